package database

import (
	"bufio"
	"net"
	"os"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testing/leak"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

// Each server starts, answers in its protocol, and is gone with its test.
func TestServers(t *testing.T) {
	if os.Getenv("HOLDFAST_PROOF") != "1" || testing.Short() {
		t.Skip("needs PostgreSQL and MariaDB: only with HOLDFAST_PROOF=1, without -short")
	}
	for program, start := range map[string]func(testing.TB) *Server{"postgres": StartPostgreSQL,
		"mariadbd": StartMariaDB} {
		t.Run(program, func(t *testing.T) {
			var server *Server
			t.Run("runs", func(t *testing.T) {
				server = start(t)
				conn, err := net.Dial("tcp", server.Addr)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				if program == "postgres" { // the client speaks first: may it use TLS?
					_, _ = conn.Write([]byte{0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f})
				}
				if _, err := bufio.NewReader(conn).ReadByte(); err != nil {
					t.Error(err)
				}
			})
			if server == nil {
				return
			}
			if conn, err := net.Dial("tcp", server.Addr); err == nil {
				conn.Close()
				t.Error("it answers after its test")
			}
		})
	}
}
