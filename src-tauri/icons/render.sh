#!/usr/bin/env bash
# Renders the SVGs to what the desktop takes. Needs rsvg-convert; run after a change of a drawing and commit the results.
set -euo pipefail
cd "$(dirname "$0")"
rsvg-convert -w 256 -h 256 app.svg -o app.png
# A tray may be light or dark, and Linux trays do not recolour: the door is drawn light on a dark tile.
for state in protected question paused degraded off; do
  paths=$(grep -o '<path[^>]*/>' "tray-$state.svg" | tr -d '\n')
  printf '<svg xmlns="http://www.w3.org/2000/svg" viewBox="-3 -3 22 22"><rect x="-3" y="-3" width="22" height="22" rx="4" fill="#16404f"/><g fill="#f3f1ea">%s</g></svg>' "$paths" |
    rsvg-convert -w 44 -h 44 -o "tray-$state.png"
done
