# SPDX-License-Identifier: GPL-2.0-only
# What all figures share; every script here begins by loading it. It reads `data`, opens `out`
# (.svg gives SVG, anything else PNG), and sets axes, ticks, marks, titles and the names beside
# the lines. The figure's own script then only plots.
#
# A data file holds named tables, each after a comment line with its name (`index "name"`):
#   settings   key and value; each key becomes a variable here
#   texts      text, its size in pixels, its place on the page (0..1 across and up)
#   xticks, yticks   position, label
#   marks      x, height of the label on the page, label
#   series     one a row: name, colour, dash, mark, shift along x (a factor where x is
#              logarithmic, else a summand), its last point, height of its name on the page
#   series N   the points of series N, with where x is drawn
if (!exists("data") || !exists("out")) {
    print "usage: gnuplot -e \"data='NAME.dat'; out='NAME.png'\" " . ARG0
    exit status 2
}
reset
set encoding utf8
set datafile missing "?"

# By way of an array, so that no value is ever read as a command.
array value[99]
keys = 0
read = ''
stats data index 'settings' using (keys = keys + 1, value[keys] = strcol(2), \
    read = read . sprintf("%s = value[%d];", strcol(1), keys), 0) nooutput
eval read

# 12 pixels of text either way: pngcairo counts points, svg pixels. Its marks are larger, too.
if (strlen(out) > 4 && out[strlen(out) - 3:] eq '.svg') {
    em = 1.0
    ps = 0.75
    set terminal svg size width + 0, height + 0 noenhanced \
        font 'sans-serif,12' background rgb 'white'
} else {
    em = 0.75
    ps = 1.0
    set terminal pngcairo size width + 0, height + 0 noenhanced font 'sans-serif,9'
}
set output out
px = 1.0 / width
py = 1.0 / height
set lmargin at screen plotleft + 0
set rmargin at screen plotright + 0
set tmargin at screen plottop + 0
set bmargin at screen plotbottom + 0
set border 3 lc rgb '#606060'
set tics nomirror out scale 0.6 textcolor rgb 'black'
set grid ytics lc rgb '#d8d8d8' lt 1 lw 0.7
set bars 0.6
unset key

set ylabel ylabel
set label xlabel at screen (plotleft + plotright) / 2, plotbottom - 50 * py center
set mxtics 1
set mytics 1
set xtics ()
set ytics ()

at = 0
if (xticks > 0) {
    array pos[xticks + 0]
    array say[xticks + 0]
    stats data index 'xticks' using (at = at + 1, pos[at] = $1, say[at] = strcol(2), 0) nooutput
    set for [i = 1:xticks + 0] xtics add (say[i] pos[i])
}
at = 0
if (yticks > 0) {
    array pos[yticks + 0]
    array say[yticks + 0]
    stats data index 'yticks' using (at = at + 1, pos[at] = $1, say[at] = strcol(2), 0) nooutput
    set for [i = 1:yticks + 0] ytics add (say[i] pos[i])
}
at = 0
if (marks > 0) {
    array pos[marks + 0]
    array up[marks + 0]
    array say[marks + 0]
    stats data index 'marks' \
        using (at = at + 1, pos[at] = $1, up[at] = $2, say[at] = strcol(3), 0) nooutput
    set for [i = 1:marks + 0] arrow from pos[i], graph 0 to pos[i], graph 1 \
        nohead back lc rgb '#606060' dt (2, 4)
    set for [i = 1:marks + 0] label say[i] at first pos[i], screen up[i] \
        center tc rgb '#606060'
}
at = 0
if (texts > 0) {
    array say[texts + 0]
    array size[texts + 0]
    array right[texts + 0]
    array up[texts + 0]
    stats data index 'texts' using (at = at + 1, say[at] = strcol(1), size[at] = $2, \
        right[at] = $3, up[at] = $4, 0) nooutput
    set for [i = 1:texts + 0] label say[i] at screen right[i], up[i] \
        font sprintf('sans-serif,%g', size[i] * em)
}

at = 0
array name[series + 0]
array colour[series + 0]
array dash[series + 0]
array mark[series + 0]
array shift[series + 0]
array endx[series + 0]
array endy[series + 0]
array up[series + 0]
stats data index 'series' using (at = at + 1, name[at] = strcol(1), colour[at] = strcol(2), \
    dash[at] = $3, mark[at] = $4, shift[at] = $5, endx[at] = $6, endy[at] = $7, up[at] = $8, 0) \
    nooutput

# Names to the right: a thin line from the last point, a piece of the line, the name.
if (names > 0) {
    set for [i = 1:series + 0] arrow from endx[i], endy[i] to screen plotright + 22 * px, up[i] \
        nohead back lc rgb '#b0b0b0' lw 0.7
    set for [i = 1:series + 0] arrow from screen plotright + 22 * px, up[i] \
        to screen plotright + 54 * px, up[i] nohead lc rgb colour[i] dt dash[i] lw 1.5
    set for [i = 1:series + 0] label '' at screen plotright + 38 * px, up[i] \
        point pt mark[i] ps 0.9 * ps lc rgb colour[i]
    set for [i = 1:series + 0] label name[i] at screen plotright + 60 * px, up[i]
} else {
    set grid xtics lc rgb '#d8d8d8' lt 1 lw 0.7
}

# Last, for a range would keep tables from being read.
set xrange [xlow + 0:xhigh + 0]
set yrange [ylow + 0:yhigh + 0]
if (xlog > 0) { set logscale x xlog + 0 }
if (ylog > 0) { set logscale y ylog + 0 }
