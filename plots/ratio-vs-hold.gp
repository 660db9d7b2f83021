# gnuplot -e "data='figures/NAME.dat'; out='NAME.png'" plots/ratio-vs-hold.gp
# SPDX-License-Identifier: GPL-2.0-only
# The rate as a ratio to the baseline's, against how many descriptors are held; `none` apart.
here = ARG0[1:strlen(ARG0) - strlen('ratio-vs-hold.gp')]
load here . 'style.gp'
# The thick line is the baseline.
if (names == 0) {
    set arrow from 1, graph 0 to 1, graph 1 nohead back lc rgb 'black' lw 1.5
} else {
    set arrow from graph 0, first 1 to graph 1, first 1 nohead back lc rgb 'black' lw 1.5
}
load here . 'lines.gp'
