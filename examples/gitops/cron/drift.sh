#!/bin/sh
# Updates a clone of the project and checks it for drift and degraded objects. Prints nothing if there are none, so that
# cron sends no mail; exits with the exit code of `reconciler drift`: 2 for drift, 7 for a degraded object without drift.
#
#   REPOSITORY          URL of the project's repository
#   CLONE               directory of the clone; created on the first run
#   RECONCILER_API_KEY  a read-only API key
set -eu

if [ -d "$CLONE/.git" ]; then
    git -C "$CLONE" fetch --quiet --depth 1 origin HEAD
    git -C "$CLONE" reset --quiet --hard FETCH_HEAD
else
    git clone --quiet --depth 1 "$REPOSITORY" "$CLONE"
fi

code=0
output=$(reconciler drift --secrets unchanged --health --project "$CLONE" --quiet --no-color) || code=$?
if [ "$code" -ne 0 ]; then printf '%s\n' "$output"; fi
exit "$code"
