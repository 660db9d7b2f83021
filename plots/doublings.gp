# gnuplot -e "data='figures/NAME.dat'; out='NAME.png'" plots/doublings.gp
# SPDX-License-Identifier: GPL-2.0-only
# How long each doubling of the table takes, against its new size.
here = ARG0[1:strlen(ARG0) - strlen('doublings.gp')]
load here . 'style.gp'
load here . 'lines.gp'
