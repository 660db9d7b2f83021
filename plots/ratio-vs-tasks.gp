# gnuplot -e "data='figures/NAME.dat'; out='NAME.png'" plots/ratio-vs-tasks.gp
# SPDX-License-Identifier: GPL-2.0-only
# The rate as a ratio to the baseline against tasks, a line a variant, each with its interval. The
# thick line is the baseline: above it is faster.
load ARG0[1:strlen(ARG0) - strlen('ratio-vs-tasks.gp')] . 'style.gp'
if (dots > 0) {
    set arrow from 1, graph 0 to 1, graph 1 nohead back lw 1.5
    plot for [i = 1:series + 0] data index points(i) using 2:(endy[i]):3:4 \
            with xerrorbars lc rgb colour[i] pt 0 lw 1.5, \
        for [i = 1:series + 0] data index points(i) using 2:(endy[i]) \
            with points lc rgb colour[i] pt mark[i] ps 1.2 lw 1.5
} else {
    set arrow from graph 0, first 1 to graph 1, first 1 nohead back lw 1.5
    plot for [i = 1:series + 0] data index points(i) using (moved($1, i)):2:3:4 \
            with yerrorbars lc rgb colour[i] pt 0 lw 1, \
        for [i = 1:series + 0] data index points(i) using (moved($1, i)):2 \
            with linespoints lc rgb colour[i] dt dash[i] pt mark[i] ps 0.9 lw 1.5
}
set output
