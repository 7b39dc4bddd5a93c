package serve

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/internal/testing/certificate"
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/lockinfo"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

// startServe runs the command, and returns where it serves the page, and the metrics alone. It ends
// by stop or with the test.
func startServe(t *testing.T, s *Serve) (url, figures string, stop func()) {
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
	lines := bufio.NewReader(in)
	url = readURL(t, lines)
	if s.Metrics != "" {
		figures = strings.TrimSuffix(readURL(t, lines), "metrics")
	}
	return url, figures, stop
}

func readURL(t *testing.T, lines *bufio.Reader) string {
	t.Helper()
	line, err := lines.ReadString('\n')
	fatal.If(t, err)
	return line[strings.LastIndexByte(line, ' ')+1 : len(line)-1]
}

func fetch(t *testing.T, client *http.Client, url string, change func(*http.Request)) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	fatal.If(t, err)
	if change != nil {
		change(r)
	}
	response, err := client.Do(r)
	fatal.If(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	fatal.If(t, err)
	return response.StatusCode, string(text)
}

func TestServe(t *testing.T) {
	s := redisserver.Start(t)
	url, _, stop := startServe(t, &Serve{Connection: cli.Connection{Redis: "redis://" + s.Addr()}})
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
	fatal.If(t, err)
	defer response.Body.Close()
	stop()
}

// --metrics-listen has the metrics and the probes, and no page. The metrics name the version, the
// classes and the worst names.
func TestServeMetricsAlone(t *testing.T) {
	connection := cli.Connection{Redis: "redis://" + redisserver.Start(t).Addr(), Prefix: "holdfast"}
	client, end, err := connection.NewClient(holdfast.Config{})
	fatal.If(t, err)
	defer end()
	if _, err := client.Mutex("order:42").TryLock(t.Context()); err != nil {
		t.Fatal(err)
	}
	var waiting sync.WaitGroup
	defer waiting.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	waiting.Go(func() { _, _ = client.Mutex("order:42").Lock(ctx) })
	for info := (lockinfo.Info{}); info.Waiters == 0; {
		if info, err = client.Inspect(ctx, "order:42"); err != nil {
			t.Fatal(err)
		}
	}
	_, figures, _ := startServe(t, &Serve{Connection: connection, Metrics: ":0", Classes: []string{"x*=none", ":"},
		Worst: 10, version: "v1.2.3", commit: "0123456789ab"})
	figures = strings.Replace(figures, "[::]", "127.0.0.1", 1)
	byAnyName := func(r *http.Request) { r.Host = "holdfast.monitoring.svc" }
	for path, want := range map[string]int{"": 404, "events": 404, "break": 404, "healthz": 200, "readyz": 200} {
		if code, _ := fetch(t, http.DefaultClient, figures+path, byAnyName); code != want {
			t.Errorf("/%s: %d, want %d", path, code, want)
		}
	}
	_, text := fetch(t, http.DefaultClient, figures+"metrics", byAnyName)
	for _, want := range []string{`holdfast_names{class="order",kind="mutex"} 1`,
		`holdfast_worst_wait_seconds{class="order",kind="mutex",name="order:42"} `,
		`,revision="0123456789ab",version="v1.2.3"} 1`} {
		if !strings.Contains(text, want) {
			t.Errorf("the metrics have no %s:\n%s", want, text)
		}
	}
}

// Without a token, metrics on a loopback address are for loopback names alone.
func TestServeGuardsTheMetrics(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	fatal.If(t, os.WriteFile(file, []byte("correct horse battery\n"), 0o600))
	connection := cli.Connection{Redis: "redis://" + redisserver.Start(t).Addr()}
	for name, c := range map[string]struct {
		address, token string
		want           int
	}{
		"loopback":            {"127.0.0.1:0", "", http.StatusMisdirectedRequest},
		"any, with a token":   {":0", file, http.StatusUnauthorized},
		"any, with no token":  {":0", "", http.StatusOK},
		"loopback with token": {"127.0.0.1:0", file, http.StatusUnauthorized},
	} {
		_, figures, stop := startServe(t, &Serve{Connection: connection, Metrics: c.address, TokenFile: c.token})
		figures = strings.Replace(figures, "[::]", "127.0.0.1", 1)
		if code, _ := fetch(t, http.DefaultClient, figures+"metrics",
			func(r *http.Request) { r.Host = "evil.example" }); code != c.want {
			t.Errorf("%s: %d, want %d", name, code, c.want)
		}
		stop()
	}
}

func TestClassOfName(t *testing.T) {
	class := classFunc([]string{"cron-*=cron", "*/[0-9]=number", "[^b-z]*!=slashes", ":", "--"})
	for name, want := range map[string]string{"cron-a:b": "cron", "a/b/7": "number", "a/b!": "slashes", "b/b!": "",
		"order:42:x": "order", ":x": "",
		"a--b": "a", "plain": "", "": "", "\xff:1": "\xff"} {
		if got := class(name); got != want {
			t.Errorf("%q has class %q, want %q", name, got, want)
		}
	}
	if classFunc(nil) != nil {
		t.Error("without rules there are classes")
	}
}

func TestServeWithoutServer(t *testing.T) {
	s := redisserver.Start(t)
	s.Kill()
	url, _, _ := startServe(t, &Serve{Connection: cli.Connection{Redis: "redis://" + s.Addr()}})
	for path, want := range map[string]int{"": 200, "healthz": 200, "readyz": 503} {
		if code, _ := fetch(t, http.DefaultClient, url+path, nil); code != want {
			t.Errorf("/%s: %d, want %d", path, code, want)
		}
	}
}

func TestServeAsksForTheToken(t *testing.T) {
	const token = "correct horse battery"
	file := filepath.Join(t.TempDir(), "token")
	fatal.If(t, os.WriteFile(file, []byte(token+"\n"), 0o600))
	s := redisserver.Start(t)
	url, _, _ := startServe(t, &Serve{Connection: cli.Connection{Redis: "redis://" + s.Addr()}, TokenFile: file})
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
	url, _, _ := startServe(t, &Serve{Connection: cli.Connection{Redis: "redis://" + s.Addr()}, Cert: cert, Key: key})
	if !strings.HasPrefix(url, "https://") {
		t.Errorf("it serves at %s", url)
	}
	text, err := os.ReadFile(cert)
	fatal.If(t, err)
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
