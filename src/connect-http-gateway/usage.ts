/** The text that the command prints for `--help`. */
export const USAGE = `connect-http-gateway: serves google.api.http routes in front of a gRPC, gRPC-Web or Connect server

  --upstream URL              the server, such as http://127.0.0.1:50051 (required); may be repeated for servers that do the same
  --upstream-connections N    HTTP/2 connections to each of them; default 2
  --descriptors FILE          a FileDescriptorSet (buf build -o set.binpb), binary
  --reflection                read the descriptors by gRPC server reflection instead
  --service-config FILE       rules outside the .proto files: a google.api.Service as YAML or JSON
  --service NAME              serve this service alone; may be repeated; default all
  --auto-routes               also serve POST /package.Service/Method for RPCs without rules
  --case-insensitive-enums    accept the names of enum values in any case
  --form-posts                accept HTML forms where the body is the whole message
  --method-override           treat a POST with X-HTTP-Method-Override as a request of that method
  --unset-fields              write fields without presence that have their default value
  --proto-names               write the names of fields as in the .proto files
  --enum-numbers              write enum values as numbers
  --int64-numbers             write 64-bit integers as numbers where JavaScript reads them exactly
  --stream-results            write the messages of streams as {"result": …}
  --grpc-metadata             metadata has the prefix Grpc-Metadata- in headers, trailers Grpc-Trailer-
  --any-update-mask           derive the only mask of a PATCH from its body, whatever its name; default: update_mask alone
  --protobuf                  accept and send application/x-protobuf, too
  --unescape-all              decode all escapes in multi-segment path variables, %2F too
  --protocol NAME             grpc (default), grpc-web or connect
  --upstream-http VERSION     2 (default); 1.1 for a gRPC-Web or Connect server without HTTP/2
  --listen HOST:PORT          default 127.0.0.1:8080; HTTP/1.1 and HTTP/2 on one port
  --tls-cert FILE --tls-key FILE   serve TLS
  --upstream-ca FILE          trust these authorities (PEM) for an https upstream
  --upstream-cert FILE --upstream-key FILE   the certificate of the gateway (PEM), for an https upstream that demands one
  --timeout-ms N              of unary calls without a deadline of their own; default 30000
  --max-timeout-ms N          the longest deadline that a client may ask for; default 3600000
  --max-body-bytes N          of a request, of a response of the upstream, or of one message of a stream; default 4194304
  --max-pending-bytes N       of all request bodies in memory; default 134217728
  --body-timeout-ms N         how long a body, or a message of a stream, may take to arrive; default 60000
  --max-calls N               calls in flight, streams included; default 10000
  --max-connections N         open connections; default 10000
  --ping-interval-ms N        HTTP/2 pings to the upstream while calls are open; default 310000, 0: none
  --retries N                 repeat unary calls that found the upstream unavailable; default 0
  --trust-forwarded           trust X-Forwarded-* of every request: only if clients cannot reach the gateway without a proxy that sets them
  --trust-proxy NETWORKS      trust X-Forwarded-* of requests from these addresses, such as 10.0.0.0/8,127.0.0.1
  --allow-origin ORIGIN       pages of this origin may change something; may be repeated; default only those of the gateway's own origin
  --allow-cross-site          check no origins: only for servers that take no cookie and nothing else that browsers send by themselves
  --cors                      pages of --allow-origin may read responses (CORS), with credentials
  --expose-header NAME        a response header that their scripts may read, besides those of Connect; any number of times
  --metrics-listen HOST:PORT  serves /metrics for Prometheus there; default: nowhere
  --metrics-host NAME         a public name by which it is called, besides addresses and private names; any number of times
  --otlp-endpoint URL         sends spans of requests and calls to this collector by OTLP/HTTP, such as http://127.0.0.1:4318; default: none
  --otlp-headers FILE         headers of the exports (name=value, …), such as a credential; read for each export
  --trace-ratio N             the share of traces that begin here, from 0 to 1; default 1. Others follow their traceparent
  --trace-limit N             traces in a second; default 100
  --live-path PATH            default /healthz: 200 while the gateway runs
  --ready-path PATH           default /readyz: 200 if the upstream is healthy, else 503
  --heartbeat-ms N            comments in idle server-sent events; default 15000, 0: none
  --problem-details           failures as application/problem+json (RFC 9457); default: google.rpc.Status
  --ndjson-heartbeats         empty lines in idle NDJSON, too: only for clients that skip them
  --heap NAME                 small (default), or node: larger, for less CPU time while a thousand calls or more wait for the upstream
  --drain-ms N                how long open requests may take after SIGTERM; default 10000
  --log WHAT                  all (default), errors or none; one JSON object per request on stdout
  --log-rate N                requests of each class of status that are logged in a second; default 1000

Files are followed: a change takes effect within a second, and a broken one changes nothing. SIGHUP reads the descriptors again, by
reflection too. SIGTERM and SIGINT end the gateway.
`;
