#!/bin/sh
# Looks for drift in a clone that it brings up to date first. Says nothing when all is well, so that cron mails only what
# matters; exits 2 if there is drift, as `reconciler drift` does.
#
#   REPOSITORY          where the project is cloned from
#   CLONE               where to; made on the first run
#   RECONCILER_API_KEY  a key that can only read
set -eu

if [ -d "$CLONE/.git" ]; then
    git -C "$CLONE" fetch --quiet --depth 1 origin HEAD
    git -C "$CLONE" reset --quiet --hard FETCH_HEAD
else
    git clone --quiet --depth 1 "$REPOSITORY" "$CLONE"
fi

code=0
found=$(reconciler drift --project "$CLONE" --quiet --no-color) || code=$?
if [ "$code" -ne 0 ]; then printf '%s\n' "$found"; fi
exit "$code"
