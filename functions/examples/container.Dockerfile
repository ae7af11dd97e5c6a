# The functions with routes as one image. At the root of the workspace:
#
#   docker build -f functions/examples/container.Dockerfile -t fencepost .
#
# A panic ends the process, because the release profile aborts. The orchestrator starts another.
FROM rust:1-slim-bookworm AS build
WORKDIR /src
COPY . .
RUN cargo build --locked --release -p functions --example container

FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates && rm -rf /var/lib/apt/lists/*
COPY --from=build /src/target/release/examples/container /usr/local/bin/fencepost
ENV LISTEN=0.0.0.0:3000
EXPOSE 3000
USER nobody
# Without a shell between, so that SIGTERM reaches the service.
ENTRYPOINT ["/usr/local/bin/fencepost"]
