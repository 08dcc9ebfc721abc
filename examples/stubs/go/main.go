// Creates a session and refreshes it, over gRPC.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	adminv1 "example.com/app/gen/auth/admin/v1"
	authv1 "example.com/app/gen/auth/v1"
)

func connect(address string) *grpc.ClientConn {
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	return connection
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	token, err := os.ReadFile(os.Getenv("SESSION_ADMIN_TOKEN_FILE"))
	if err != nil {
		log.Fatal(err)
	}
	admin := adminv1.NewSessionAdminServiceClient(connect(os.Getenv("SESSION_ADMIN")))
	authorized := metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+strings.TrimSpace(string(token)))
	created, err := admin.CreateSession(authorized, &adminv1.CreateSessionRequest{Subject: "alice"})
	if err != nil {
		log.Fatal(err)
	}
	// A browser sends the cookie by itself. Here the code sends it.
	sessions := authv1.NewSessionServiceClient(connect(os.Getenv("SESSION_PUBLIC")))
	browser := metadata.AppendToOutgoingContext(ctx, "cookie", "refresh_token="+created.RefreshToken)
	refreshed, err := sessions.Refresh(browser, &authv1.RefreshRequest{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("refreshed", created.Session.Subject, len(refreshed.Data.AccessToken) > 0)
}
