# gnuplot -e "data='figures/NAME.dat'; out='NAME.png'" plots/fairness.gp
# SPDX-License-Identifier: GPL-2.0-only
# The rate of each task, sorted: flat is fair, a steep line starves some tasks.
here = ARG0[1:strlen(ARG0) - strlen('fairness.gp')]
load here . 'style.gp'
load here . 'lines.gp'
