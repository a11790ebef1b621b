# The hub as an image: `docker build -t trunkline .`, and compose.yaml runs it.
FROM rust:1-slim-bookworm AS build
WORKDIR /src
COPY . .
RUN cargo build --release --locked -p trunkline-cli

# Servers that are programs of their own (npx, uvx) need an image that has them: build on this one and add them.
FROM debian:bookworm-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /src/target/release/trunkline /usr/local/bin/trunkline
# Not the superuser: what a server can do, its programs can do too.
RUN useradd --create-home --uid 10001 trunkline
USER trunkline
WORKDIR /config
EXPOSE 7411
# Within a container the address has to be public; --auth decides who may call.
ENTRYPOINT ["trunkline"]
CMD ["serve", "--trust", "--http", "0.0.0.0:7411", "--auth", "bearer:/run/secrets/tokens"]
