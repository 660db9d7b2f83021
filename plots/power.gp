# gnuplot -e "data='figures/NAME.dat'; out='NAME.png'" plots/power.gp
# SPDX-License-Identifier: GPL-2.0-only
# How often an effect of a size is found, against the time spent measuring: a line an effect.
here = ARG0[1:strlen(ARG0) - strlen('power.gp')]
load here . 'style.gp'
load here . 'lines.gp'
