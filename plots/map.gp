# gnuplot -e "data='figures/NAME.dat'; out='NAME.png'" plots/map.gp
# SPDX-License-Identifier: GPL-2.0-only
# Which variant wins at each number of tasks and hold, and by how much: the colour and mark are
# the winner's, hatched is inconclusive, grey is no difference (series 0).
load ARG0[1:strlen(ARG0) - strlen('map.gp')] . 'style.gp'
unset grid
set tics scale 0
set border 0
set for [i = 1:series + 0] object rectangle from screen plotright + 20 * px, up[i] - 8 * py \
    to screen plotright + 44 * px, up[i] + 8 * py fs solid 0.4 noborder fc rgb colour[i]
set for [i = 1:series + 0] label '' at screen plotright + 32 * px, up[i] \
    point pt mark[i] ps 0.9 * ps lc rgb colour[i]
set object rectangle from screen plotright + 20 * px, unsure - 8 * py \
    to screen plotright + 44 * px, unsure + 8 * py fs pattern 4 border lc rgb '#a0a0a0' \
    fc rgb '#a0a0a0'
array pale[series + 0]
at = 0
stats data index 'hatches' using (at = at + 1, pale[at] = strcol(1), 0) nooutput
won(i, is, x) = column(3) == i && column(4) == is ? x : NaN
plot data index 'cells' using ($3 == 0 ? $1 : NaN):2:($1 - 0.48):($1 + 0.48):($2 - 0.46):($2 + 0.46) \
        with boxxyerror fs solid noborder lc rgb '#ececec', \
    for [i = 1:series + 0] data index 'cells' \
        using (won(i, 1, $1)):2:($1 - 0.48):($1 + 0.48):($2 - 0.46):($2 + 0.46) \
        with boxxyerror fs solid 0.4 noborder lc rgb colour[i], \
    for [i = 1:series + 0] data index 'cells' \
        using (won(i, 0, $1)):2:($1 - 0.48):($1 + 0.48):($2 - 0.46):($2 + 0.46) \
        with boxxyerror fs pattern 4 noborder lc rgb pale[i], \
    for [i = 1:series + 0] data index 'cells' using ($3 == i ? $1 : NaN):($2 + 0.2) \
        with points pt mark[i] ps 1.3 * ps lc rgb colour[i], \
    data index 'cells' using 1:($2 - 0.2):5 with labels
set output
