package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"io"
	"os"
	"time"

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

// A file of a tar file. One whose name ends with a slash is a folder.
type file struct {
	name string
	mode int64
	data []byte
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
	thirdParty, err := os.ReadFile(b.thirdParty)
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, part := range []struct {
		by    string
		files []file
	}{
		{"root certificates of Mozilla, license", []file{
			{"etc/", 0o755, nil}, {"etc/ssl/", 0o755, nil}, {"etc/ssl/certs/", 0o755, nil},
			{"etc/ssl/certs/ca-certificates.crt", 0o644, certificates()},
			{"etc/passwd", 0o644, []byte("nonroot:x:" + user + ":" + user + ":nonroot:/:/sbin/nologin\n")},
			{"usr/", 0o755, nil}, {"usr/share/", 0o755, nil}, {"usr/share/doc/", 0o755, nil},
			{"usr/share/doc/holdfast/", 0o755, nil},
			{"usr/share/doc/holdfast/LICENSE", 0o644, license},
		}},
		{"holdfast " + b.version, []file{
			{"usr/", 0o755, nil}, {"usr/bin/", 0o755, nil}, {program, 0o755, executable},
			{"usr/share/", 0o755, nil}, {"usr/share/doc/", 0o755, nil}, {"usr/share/doc/holdfast/", 0o755, nil},
			{"usr/share/doc/holdfast/THIRD_PARTY.txt", 0o644, thirdParty},
		}},
	} {
		var content bytes.Buffer
		if err := archive(&content, part.files, b.date); err != nil {
			return nil, err
		}
		layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(content.Bytes())), nil
		}, tarball.WithMediaType(types.OCILayer))
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

// archive writes a tar file, whose files are of root and of one date.
func archive(to io.Writer, files []file, date time.Time) error {
	w := tar.NewWriter(to)
	for _, f := range files {
		header := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.data)), ModTime: date}
		if err := w.WriteHeader(header); err != nil {
			return err
		}
		if _, err := w.Write(f.data); err != nil {
			return err
		}
	}
	return w.Close()
}
