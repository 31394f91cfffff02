import { expect, test } from 'vitest'
import { isLauncher } from './launchers.ts'

test.each([
  'npm start',
  'npm exec rivulet dev',
  'node /usr/lib/node_modules/npm/bin/npm-cli.js start',
  '/usr/bin/node --no-warnings /usr/bin/pnpm start',
  'sh -c rivulet start agents.ts ',
  '/bin/sh -c cd shop && npm start 2>&1 | tee log',
  'bash -lc npx rivulet dev &> log',
  'bash -e -c npm start',
])('%s waits for what it runs', command => expect(isLauncher(command)).toBe(true))

test.each([
  '',
  '-bash',
  '/bin/bash /srv/start.sh',
  'sh -c npx rivulet start & ',
  'bash -c rivulet start >log 2>&1 & disown',
  'sh -c nohup rivulet start',
  'sh -c setsid rivulet start',
  'node /srv/supervisor.js -c npm',
  'node server.js',
  '/lib/systemd/systemd --user',
  'docker-init -- npm start',
])('%s is no launcher', command => expect(isLauncher(command)).toBe(false))
