# gnuplot -e "data='figures/NAME.dat'; out='NAME.png'" plots/path-length.gp
# SPDX-License-Identifier: GPL-2.0-only
# Instructions per operation: a bar a variant, a piece a function; hatched and full pieces of one
# colour are different functions.
load ARG0[1:strlen(ARG0) - strlen('path-length.gp')] . 'style.gp'
unset grid
set border 1
# Patterns 3 and 4 are full and hatched.
piece(i) = mark[i] > 0 ? 4 : 3
set for [i = 1:series + 0] object rectangle from screen plotright + 20 * px, up[i] - 8 * py \
    to screen plotright + 44 * px, up[i] + 8 * py \
    fs pattern piece(i) fc rgb colour[i]
set style textbox opaque fillcolor rgb 'white' noborder margins 1.2, 0.6
plot for [i = 1:series + 0] data index sprintf('series %d', i) \
        using (($1 + $2) / 2):3:1:2:($3 - 0.35):($3 + 0.35) \
        with boxxyerror fs pattern piece(i) lc rgb colour[i], \
    for [i = 1:series + 0] data index sprintf('series %d', i) \
        using (strlen(strcol(4)) ? ($1 + $2) / 2 : NaN):3:4 with labels boxed, \
    data index 'totals' using 1:2:3 with labels left offset 0.6, 0
set output
