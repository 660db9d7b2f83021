# gnuplot -e "data='figures/NAME.dat'; out='NAME.png'" plots/rate-vs-tasks.gp
# SPDX-License-Identifier: GPL-2.0-only
# Operations a second against tasks, a line a variant, each with its interval. Dotted verticals
# are where the next task leaves a package or node, or shares a core.
load ARG0[1:strlen(ARG0) - strlen('rate-vs-tasks.gp')] . 'style.gp'
if (dots > 0) {
    plot for [i = 1:series + 0] data index points(i) using 2:(endy[i]):3:4 \
            with xerrorbars lc rgb colour[i] pt 0 lw 1.5, \
        for [i = 1:series + 0] data index points(i) using 2:(endy[i]) \
            with points lc rgb colour[i] pt mark[i] ps 1.2 lw 1.5
} else {
    plot for [i = 1:series + 0] data index points(i) using (moved($1, i)):2:3:4 \
            with yerrorbars lc rgb colour[i] pt 0 lw 1, \
        for [i = 1:series + 0] data index points(i) using (moved($1, i)):2 \
            with linespoints lc rgb colour[i] dt dash[i] pt mark[i] ps 0.9 lw 1.5
}
set output
