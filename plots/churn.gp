# gnuplot -e "data='figures/NAME.dat'; out='NAME.png'" plots/churn.gp
# SPDX-License-Identifier: GPL-2.0-only
# The 2015 loop: the time of N turns against N. Straight at 45 degrees is linear in N; steeper is
# a search that grows with what is open.
here = ARG0[1:strlen(ARG0) - strlen('churn.gp')]
load here . 'style.gp'
load here . 'lines.gp'
