# gnuplot -e "data='figures/NAME.dat'; out='NAME.png'" plots/map.gp
# SPDX-License-Identifier: GPL-2.0-only
# Which variant wins at each number of tasks and hold, and by how much: the colour and mark are
# the winner's, hatched is not separated from the next.
load ARG0[1:strlen(ARG0) - strlen('map.gp')] . 'style.gp'
unset grid
set tics scale 0
set border 0
set for [i = 1:series + 0] object rectangle from screen plotright + 20 * px, up[i] - 8.0 / height \
    to screen plotright + 44 * px, up[i] + 8.0 / height fs solid 0.4 noborder fc rgb colour[i]
set for [i = 1:series + 0] label '' at screen plotright + 32 * px, up[i] \
    point pt mark[i] ps 0.9 lc rgb colour[i]
set object rectangle from screen plotright + 20 * px, unsure - 8.0 / height \
    to screen plotright + 44 * px, unsure + 8.0 / height fs pattern 4 border lc rgb '#a0a0a0' \
    fc rgb '#a0a0a0'
hex(s) = int('0x' . s[2:])
plot for [is = 0:1] data index 'cells' \
        using ($6 == is ? $1 : NaN):2:($1 - 0.48):($1 + 0.48):($2 - 0.46):($2 + 0.46):(hex(strcol(3))) \
        with boxxyerror fs pattern (is ? 3 : 4) noborder lc rgb variable, \
    data index 'cells' using 1:($2 + 0.2):5:(hex(strcol(4))) \
        with points pt variable ps 0.9 lc rgb variable, \
    data index 'cells' using 1:($2 - 0.2):7 with labels
set output
