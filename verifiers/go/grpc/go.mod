module session-service.example/verifier/grpc

go 1.24.0

require (
	google.golang.org/grpc v1.76.0
	session-service.example/verifier v0.0.0
)

require (
	golang.org/x/net v0.42.0 // indirect
	golang.org/x/sys v0.34.0 // indirect
	golang.org/x/text v0.27.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20250804133106-a7a43d27e69b // indirect
	google.golang.org/protobuf v1.36.6 // indirect
)

replace session-service.example/verifier => ../
