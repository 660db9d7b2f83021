# SPDX-License-Identifier: GPL-2.0-only
"""The runner: plan, host, drive, store, stats, judge, then summary, figures, report."""
