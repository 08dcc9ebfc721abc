module session-service.example/verifier

go 1.19
