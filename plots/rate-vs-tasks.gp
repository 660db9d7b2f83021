# gnuplot -e "data='figures/NAME.dat'; out='NAME.png'" plots/rate-vs-tasks.gp
# SPDX-License-Identifier: GPL-2.0-only
# Operations a second against tasks: a line a variant, with its intervals. Dotted verticals are
# where the next task leaves a package or node, or shares a core.
here = ARG0[1:strlen(ARG0) - strlen('rate-vs-tasks.gp')]
load here . 'style.gp'
load here . 'lines.gp'
