# The images of Rivulet: `docker build --target api .` and `docker build --target worker .`
# What runs is one file of JavaScript and what it reads, as a user without rights, on a base that has Node and no packages of ours.

FROM node:24-slim@sha256:a9f5f7c91a432850b2a8a7797adf5eadb6c733ceed61167806cee7ea7fbc29df AS build
WORKDIR /app
# The manifests first: while they stay the same, so does what npm installed.
COPY package.json package-lock.json .npmrc ./
COPY apps/agents/package.json apps/agents/
COPY apps/api/package.json apps/api/
COPY apps/cli/package.json apps/cli/
COPY apps/console/package.json apps/console/
COPY packages/agent/package.json packages/agent/
COPY packages/broker/package.json packages/broker/
COPY packages/client/package.json packages/client/
COPY packages/contract/package.json packages/contract/
COPY packages/engines/package.json packages/engines/
COPY packages/narrator/package.json packages/narrator/
COPY packages/protocol/package.json packages/protocol/
COPY packages/runtime/package.json packages/runtime/
COPY packages/views/package.json packages/views/
COPY packages/worker/package.json packages/worker/
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY tsconfig.json docker-compose.yml .env.example ./
COPY migrations migrations
COPY packages packages
COPY apps apps
COPY scripts scripts
COPY ops ops
RUN npm run build

FROM node:24-slim@sha256:a9f5f7c91a432850b2a8a7797adf5eadb6c733ceed61167806cee7ea7fbc29df AS program
ENV NODE_ENV=production
WORKDIR /app
USER node
STOPSIGNAL SIGTERM
CMD ["node", "--enable-source-maps", "main.mjs"]

# With arguments it is the command line: `docker run … rivulet-api node main.mjs keys create`.
# Only a key opens it: beyond its own machine, the API refuses to start without RIVULET_KEY or KEY_PEPPER.
FROM program AS api
ENV HOST=0.0.0.0
ENV PORT=4000
COPY --from=build /app/dist/api ./
EXPOSE 4000
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/healthz`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]

# Without agents it does not start: AGENT_FILES names files of plain JavaScript that you add, each bundled with what it imports. Or write a program
# of your own that calls createWorker. RIVULET_EXAMPLE_AGENTS=on is for a demonstration.
FROM program AS worker
ENV WORKER_METRICS_PORT=9464
COPY --from=build /app/dist/worker ./
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.WORKER_METRICS_PORT}/metrics`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
