# SPDX-License-Identifier: GPL-2.0-only
# The body of the figures made of lines: intervals below, then lines and marks. Where all
# points have one x, a row of dots a series instead. Column 5 says where x is drawn.
points(i) = sprintf('series %d', i)
moved(x, i) = xlog > 0 ? x * shift[i] : x + shift[i]
# Where the first point is the hold `none`, no line leads to it and the axis is broken.
joined(x, at) = none > 0 && x == 0 ? NaN : at
# A point without an interval is left out of the intervals.
seen(low, y) = low == low ? y : NaN
if (names == 0) {
    plot for [i = 1:series + 0] data index points(i) using 2:(seen($3, endy[i])):3:4 \
            with xerrorbars lc rgb colour[i] pt -1 lw 1.5, \
        for [i = 1:series + 0] data index points(i) using 2:(endy[i]) \
            with points lc rgb colour[i] pt mark[i] ps 1.2 * ps lw 1.5
} else {
    if (none > 0) { set label '//' at first 45, graph 0 center front }
    plot for [i = 1:series + 0] data index points(i) using (moved($5, i)):(seen($3, $2)):3:4 \
            with yerrorbars lc rgb colour[i] pt -1 lw 1, \
        for [i = 1:series + 0] data index points(i) using (moved(joined($1, $5), i)):2 \
            with lines lc rgb colour[i] dt dash[i] lw 1.5, \
        for [i = 1:series + 0] data index points(i) every every + 0 \
            using (moved($5, i)):2 with points lc rgb colour[i] pt mark[i] ps 0.9 * ps lw 1.5
}
set output
