package dist

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// A descriptor is as in the OCI image specification.
type descriptor struct {
	MediaType string
	Digest    string
	Size      int
	Platform  struct{ OS, Architecture string }
}

// A layout is the directory of an OCI image.
type layout struct {
	*testing.T
	dir string
}

// blob reads what a descriptor describes, whose size and digest must be right.
func (l *layout) blob(d descriptor, into any) []byte {
	l.Helper()
	data := read(l.T, filepath.Join(l.dir, "blobs", strings.ReplaceAll(d.Digest, ":", "/")))
	sum := sha256.Sum256(data)
	if d.Digest != "sha256:"+hex.EncodeToString(sum[:]) || d.Size != len(data) {
		l.Fatalf("%s of %d bytes has digest %x and %d bytes", d.Digest, d.Size, sum, len(data))
	}
	if into != nil {
		if err := json.Unmarshal(data, into); err != nil {
			l.Fatal(err)
		}
	}
	return data
}

// image: its layers, unpacked to a root, run; its configuration says how.
func (f *files) image(t *testing.T) {
	l := &layout{T: t, dir: t.TempDir()}
	unpack(t, l.dir, bytes.NewReader(read(t, f.path("image.tar"))))
	if text := string(read(t, filepath.Join(l.dir, "oci-layout"))); !strings.Contains(text, `"imageLayoutVersion"`) {
		t.Errorf("oci-layout is %q", text)
	}
	var top, index struct{ Manifests []descriptor }
	if err := json.Unmarshal(read(t, filepath.Join(l.dir, "index.json")), &top); err != nil || len(top.Manifests) != 1 {
		t.Fatalf("index.json has %d manifests: %v", len(top.Manifests), err)
	}
	l.blob(top.Manifests[0], &index)
	seen := map[string]bool{}
	for _, m := range index.Manifests {
		seen[m.Platform.OS+"/"+m.Platform.Architecture] = true
		root := l.root(m)
		if m.Platform.Architecture != runtime.GOARCH {
			continue
		}
		if os.Geteuid() == 0 {
			f.runs(t, "chroot", "--userspec=65532:65532", root, "/usr/bin/holdfast")
		} else {
			f.runs(t, filepath.Join(root, "usr/bin/holdfast"))
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(read(t, filepath.Join(root, "etc/ssl/certs/ca-certificates.crt"))) {
			t.Error("the image has no root certificates")
		}
	}
	if !seen["linux/amd64"] || !seen["linux/arm64"] || len(seen) != 2 {
		t.Errorf("the image is for %v", seen)
	}
	if path, err := exec.LookPath("skopeo"); err == nil {
		out := output(t, exec.Command(path, "inspect", "--raw", "oci-archive:"+f.path("image.tar")))
		t.Logf("skopeo reads it: %d bytes", len(out))
	}
}

// root unpacks the layers of an image, and looks at its configuration.
func (l *layout) root(m descriptor) string {
	l.Helper()
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	l.blob(m, &manifest)
	var config struct {
		Architecture string
		Config       struct {
			User       string
			Entrypoint []string
			Labels     map[string]string
		}
		RootFS struct {
			IDs []string `json:"diff_ids"`
		} `json:"rootfs"`
	}
	l.blob(manifest.Config, &config)
	c := config.Config
	if c.User != "65532:65532" || len(c.Entrypoint) != 1 || c.Entrypoint[0] != "/usr/bin/holdfast" ||
		config.Architecture != m.Platform.Architecture || c.Labels["org.opencontainers.image.version"] != version {
		l.Errorf("the configuration is %+v", config)
	}
	root := l.TempDir()
	for i, layer := range manifest.Layers {
		content, err := gzip.NewReader(bytes.NewReader(l.blob(layer, nil)))
		if err != nil {
			l.Fatal(err)
		}
		data, err := io.ReadAll(content)
		if err != nil {
			l.Fatal(err)
		}
		if sum := sha256.Sum256(data); i >= len(config.RootFS.IDs) ||
			config.RootFS.IDs[i] != "sha256:"+hex.EncodeToString(sum[:]) {
			l.Errorf("layer %d has another digest than the configuration says", i)
		}
		unpack(l.T, root, bytes.NewReader(data))
	}
	return root
}

// unpack writes the files of a tar file, which is our own, below a directory.
func unpack(t *testing.T, dir string, from io.Reader) {
	t.Helper()
	for r := tar.NewReader(from); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if !filepath.IsLocal(header.Name) {
			t.Fatalf("the name %q leaves the directory", header.Name)
		}
		path := filepath.Join(dir, header.Name)
		if header.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o755)
		} else if err = os.MkdirAll(filepath.Dir(path), 0o755); err == nil {
			var data []byte
			if data, err = io.ReadAll(r); err == nil {
				err = os.WriteFile(path, data, header.FileInfo().Mode())
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
