# gnuplot -e "data='figures/NAME.dat'; out='NAME.png'" plots/churn-ratio.gp
# SPDX-License-Identifier: GPL-2.0-only
# The 2015 loop: turns a second as a ratio to the baseline's, against N.
here = ARG0[1:strlen(ARG0) - strlen('churn-ratio.gp')]
load here . 'style.gp'
# The thick line is the baseline.
if (names == 0) {
    set arrow from 1, graph 0 to 1, graph 1 nohead back lc rgb 'black' lw 1.5
} else {
    set arrow from graph 0, first 1 to graph 1, first 1 nohead back lc rgb 'black' lw 1.5
}
load here . 'lines.gp'
