# SPDX-License-Identifier: GPL-2.0-only
"""The runner: plan, host, drive, store, stats, then summary, figures, report."""
