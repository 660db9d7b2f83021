# gnuplot -e "data='figures/NAME.dat'; out='NAME.png'" plots/windows.gp
# SPDX-License-Identifier: GPL-2.0-only
# The windows of one cell: a strip a variant. A slope is drift, two bands are bimodality; rings were
# disturbed, triangles lie beyond the frame, the thin line is the median. Bars on the right: how
# often each rate was seen.
load ARG0[1:strlen(ARG0) - strlen('windows.gp')] . 'style.gp'
set grid noxtics
# Runs: full lines, for from the second strip on svg would lose the dots of dotted ones.
unset arrow
if (marks > 0) {
    set for [k = 1:marks + 0] arrow from pos[k], graph 0 to pos[k], graph 1 \
        nohead back lc rgb '#c0c0c0'
}
windows(i) = sprintf('series %d', i)
counts(i) = sprintf('counts %d', i)
within(y) = y < ylow ? ylow + 0 : y > yhigh ? yhigh + 0 : y
median(i) = endy[i]
set multiplot
# The lowest strip comes first: it alone has ticks and, for all, the texts.
do for [i = series + 0:1:-1] {
    set tmargin at screen up[i] + strip
    set bmargin at screen up[i]
    plot median(i) with lines lc rgb '#606060' lw 0.7, \
        data index windows(i) using 1:2 with points pt mark[i] ps 0.5 * ps lc rgb colour[i], \
        data index windows(i) using 1:($2 > yhigh ? yhigh + 0 : NaN) \
            with points pt 9 ps 0.9 * ps lc 'black', \
        data index windows(i) using 1:($2 < ylow ? ylow + 0 : NaN) \
            with points pt 11 ps 0.9 * ps lc 'black', \
        data index windows(i) using 1:($3 == 0 ? NaN : within($2)) \
            with points pt 6 ps 1.1 * ps lc 'black'
    unset label
    unset xtics
}
unset arrow
unset ytics
unset border
set lmargin at screen plotright + 10 * px
set rmargin at screen plotright + 90 * px
set xrange [0:1]
do for [i = 1:series + 0] {
    set tmargin at screen up[i] + strip
    set bmargin at screen up[i]
    plot data index counts(i) using ($3 / 2):(($1 + $2) / 2):(0):3:1:2 \
        with boxxyerror fs solid 1 noborder lc rgb colour[i]
}
unset multiplot
set output
