package serve

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/internal/testing/certificate"
	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

func TestServeRefusesBadArguments(t *testing.T) {
	short := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(short, []byte("guess\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"--listen 0.0.0.0:0":                                              "no loopback address",
		"--listen :0":                                                     "no loopback address",
		"--listen example.com:0 --token-file x":                           "no loopback address",
		"--listen 0.0.0.0:0 --listen-cert x":                              "both or none",
		"--listen 8484":                                                   "an address and a port",
		"--listen 127.0.0.1:0 --token-file missing":                       "--token-file",
		"--listen 127.0.0.1:0 --token-file " + short:                      "at least 16",
		"--listen 127.0.0.1:0 --listen-cert missing --listen-key missing": "--listen-cert",
	} {
		cmd := newServe()
		cmd.SetArgs(strings.Fields(args))
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		if err := cmd.Execute(); !errors.As(err, new(*cli.UsageError)) || !strings.Contains(err.Error(), want) {
			t.Errorf("serve %s: %v", args, err)
		}
	}
}

// startServe runs the command, and returns where it serves. It ends by stop or with the test.
func startServe(t *testing.T, s *Serve) (url string, stop func()) {
	t.Helper()
	in, out := io.Pipe()
	s.Listen, s.Err, s.Prefix = "127.0.0.1:0", out, "holdfast"
	ctx, cancel := context.WithCancelCause(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx); out.Close() }()
	stop = sync.OnceFunc(func() {
		cancel(cli.ExitWith(130, cli.ErrInterrupted))
		if err := <-done; err != nil {
			t.Errorf("the command ended with %v", err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	t.Cleanup(stop)
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	_, url, _ = strings.Cut(strings.TrimSpace(line), " at ")
	return url, stop
}

func fetch(t *testing.T, client *http.Client, url string, change func(*http.Request)) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(r)
	}
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func TestServe(t *testing.T) {
	s := redisserver.Start(t)
	url, stop := startServe(t, &Serve{Connection: cli.Connection{Redis: "redis://" + s.Addr()}})
	for path, want := range map[string]string{
		"": "<title>holdfast", "healthz": "ok", "readyz": "ok", "metrics": "holdfast_list_success 1",
	} {
		if code, text := fetch(t, http.DefaultClient, url+path, nil); code != 200 || !strings.Contains(text, want) {
			t.Errorf("/%s: %d: %s", path, code, text)
		}
	}
	// A name that another site led here.
	if code, _ := fetch(t, http.DefaultClient, url,
		func(r *http.Request) { r.Host = "evil.example" }); code != http.StatusMisdirectedRequest {
		t.Errorf("another name: %d", code)
	}
	// The command ends although a page is open.
	response, err := http.Get(url + "events")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	stop()
}

func TestServeWithoutServer(t *testing.T) {
	s := redisserver.Start(t)
	s.Kill()
	url, _ := startServe(t, &Serve{Connection: cli.Connection{Redis: "redis://" + s.Addr()}})
	for path, want := range map[string]int{"": 200, "healthz": 200, "readyz": 503} {
		if code, _ := fetch(t, http.DefaultClient, url+path, nil); code != want {
			t.Errorf("/%s: %d, want %d", path, code, want)
		}
	}
}

func TestServeAsksForTheToken(t *testing.T) {
	const token = "correct horse battery"
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := redisserver.Start(t)
	url, _ := startServe(t, &Serve{Connection: cli.Connection{Redis: "redis://" + s.Addr()}, TokenFile: file})
	for name, c := range map[string]struct {
		path   string
		change func(*http.Request)
		want   int
	}{
		"none":           {"", nil, 401},
		"stream":         {"events", nil, 401},
		"metrics":        {"metrics", nil, 401},
		"wrong":          {"", func(r *http.Request) { r.Header.Set("Authorization", "Bearer x") }, 401},
		"empty":          {"", func(r *http.Request) { r.Header.Set("Authorization", "Bearer ") }, 401},
		"bearer":         {"", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }, 200},
		"password":       {"metrics", func(r *http.Request) { r.SetBasicAuth("me", token) }, 200},
		"as a user name": {"", func(r *http.Request) { r.SetBasicAuth(token, "") }, 401},
		"health":         {"healthz", nil, 200},
		"ready":          {"readyz", nil, 200},
	} {
		if code, _ := fetch(t, http.DefaultClient, url+c.path, c.change); code != c.want {
			t.Errorf("%s: %d, want %d", name, code, c.want)
		}
	}
}

func TestServeWithTLS(t *testing.T) {
	cert, key := certificate.Write(t)
	s := redisserver.Start(t)
	url, _ := startServe(t, &Serve{Connection: cli.Connection{Redis: "redis://" + s.Addr()}, Cert: cert, Key: key})
	if !strings.HasPrefix(url, "https://") {
		t.Errorf("it serves at %s", url)
	}
	text, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	if code, _ := fetch(t, client, url, nil); code != 200 {
		t.Errorf("%d", code)
	}
	client.CloseIdleConnections()
}

func TestLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"127.0.0.1:8484": true, "localhost": true, "[::1]:1": true, "[::1]": true, "127.9.9.9": true,
		"localhost.evil.example:1": false, "evil.example": false, "0.0.0.0:1": false, "": false,
		net.JoinHostPort("10.0.0.1", "1"): false,
	} {
		if isLocal(host) != want {
			t.Errorf("local(%q) is %v", host, !want)
		}
	}
}
