#!/bin/sh
# Writes the secrets that docker-compose.yml needs into .env, for its owner alone. What is set there stays as it is.
#   sh scripts/make-env.sh [file]
set -eu
umask 077

file=${1:-$(dirname "$0")/../.env}
touch "$file"
chmod 600 "$file"

# A last line without its end would swallow the next one.
[ -z "$(tail -c 1 "$file")" ] || echo >>"$file"

for name in RIVULET_KEY RIVULET_WORKER_KEY KEY_PEPPER SECRETS_KEY REDIS_PASSWORD POSTGRES_PASSWORD POSTGRES_API_PASSWORD; do
  if grep -q "^$name=." "$file"; then continue; fi
  # Hex, because some of them become part of a URL.
  secret=$(od -An -N 32 -t x1 /dev/urandom | tr -d ' \n')
  echo "$name=$secret" >>"$file"
  echo "$name was made"
done
