package main

import (
	"bytes"
	"encoding/pem"
	"io"
	"os"

	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

const (
	user    = "65532" // as "nonroot" of other images without a shell
	program = "usr/bin/holdfast"
)

// labels are those of the OCI image specification.
func (b build) labels() map[string]string {
	const prefix, home = "org.opencontainers.image.", "https://github.com/holdfast-go/holdfast"
	return map[string]string{
		prefix + "title":       "holdfast",
		prefix + "description": "Distributed locks on Redis and Valkey, for commands",
		prefix + "version":     b.version,
		prefix + "revision":    b.commit,
		prefix + "created":     b.date.Format("2006-01-02T15:04:05Z07:00"),
		prefix + "licenses":    "Apache-2.0",
		prefix + "url":         home,
		prefix + "source":      home,
	}
}

// image has what changes with no version in its first layer, and the program in its second.
func (b build) image(architecture, path string) (v1.Image, error) {
	executable, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	license, err := os.ReadFile(b.license)
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, part := range []struct {
		files []file
		by    string
	}{
		{[]file{
			{"etc/ssl/certs/ca-certificates.crt", 0o644, certificates()},
			{"etc/passwd", 0o644, []byte("nonroot:x:" + user + ":" + user + ":nonroot:/:/sbin/nologin\n")},
			{"usr/share/doc/holdfast/LICENSE", 0o644, license},
		}, "root certificates of Mozilla, license"},
		{[]file{{program, 0o755, executable}}, "holdfast " + b.version},
	} {
		content, err := archive(part.files, b.date)
		if err != nil {
			return nil, err
		}
		layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(content)),
				nil
		},
			tarball.WithMediaType(types.OCILayer))
		if err != nil {
			return nil, err
		}
		image, err = mutate.Append(image, mutate.Addendum{Layer: layer, MediaType: types.OCILayer,
			History: v1.History{Created: v1.Time{Time: b.date}, CreatedBy: part.by}})
		if err != nil {
			return nil, err
		}
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", architecture, v1.Time{Time: b.date}
	config.Config = v1.Config{
		User:       user + ":" + user,
		Entrypoint: []string{"/" + program},
		Env:        []string{"PATH=/usr/bin"},
		WorkingDir: "/",
		Labels:     b.labels(),
	}
	return mutate.ConfigFile(image, config)
}

// certificates leaves out roots that Mozilla trusts with a constraint, which no file can express.
func certificates() []byte {
	var all bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&all, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a Buffer does not fail
		}
	}
	return all.Bytes()
}
