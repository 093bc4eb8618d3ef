#!/bin/sh
# What the container starts: `serve` fetches the model named by PLUMB_MODEL first, unless it is a
# file or already in the volume. Every other argument list goes to plumb as it is.
set -eu
if [ "${1:-serve}" = serve ] && [ ! -e "$PLUMB_MODEL" ]; then
  plumb model pull "$PLUMB_MODEL"
fi
exec plumb "$@"
