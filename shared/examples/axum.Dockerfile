# The service of axum.rs as an image. At the root of the workspace:
#
#   docker build -f shared/examples/axum.Dockerfile -t visits .
#
# On ECS, the role of the task brings the credentials; set AWS_REGION and the names of the tables.
FROM rust:1-slim-bookworm AS build
WORKDIR /src
COPY . .
RUN cargo build --locked --release -p fencepost --example axum --features lambda

FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates && rm -rf /var/lib/apt/lists/*
COPY --from=build /src/target/release/examples/axum /usr/local/bin/visits
ENV LISTEN=0.0.0.0:3000
EXPOSE 3000
USER nobody
# Without a shell between, so that SIGTERM reaches the service.
ENTRYPOINT ["/usr/local/bin/visits"]
