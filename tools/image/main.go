// Command image makes an OCI image of holdfast for several architectures without a daemon, and
// writes it as a layout in a tar file, which "docker load" reads too:
//
//	image -version 1.2.3 -commit 0123abcd -date 2026-11-24T04:38:01Z -license LICENSE \
//	      -third-party THIRD_PARTY.txt -out image.tar amd64=PROGRAM arm64=PROGRAM
//
// The image has the program, the licenses, and the root certificates of Mozilla for rediss://. The
// certificates come from a Go module, at a fixed version. The image has no shell, and its user is
// no. 65532. The same arguments give the same bytes.
//
// Docker without the store of containerd loads one image for each architecture, which is the end of
// its tag. The first of them has the tag of the version alone too.
package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// A build says what the image is made of.
type build struct {
	version, commit, license, thirdParty string
	date                                 time.Time
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("image: ")
	var b build
	var date, out string
	flag.StringVar(&b.version, "version", "", "version, without v")
	flag.StringVar(&b.commit, "commit", "", "commit")
	flag.StringVar(&b.license, "license", "", "file with the license")
	flag.StringVar(&b.thirdParty, "third-party", "", "file with the licenses of what it is made of")
	flag.StringVar(&date, "date", "", "date of the commit, as in RFC 3339")
	flag.StringVar(&out, "out", "", "tar file to write")
	flag.Parse()
	if err := b.write(out, date, flag.Args()); err != nil {
		log.Fatal(err)
	}
}

// write leaves no file at out if it fails.
func (b build) write(out, date string, programs []string) (err error) {
	if b.date, err = time.Parse(time.RFC3339, date); err != nil {
		return fmt.Errorf("-date: %w", err)
	}
	b.date = b.date.UTC()
	if b.version == "" || b.commit == "" || b.license == "" || b.thirdParty == "" || out == "" || len(programs) == 0 {
		return errors.New("-version, -commit, -license, -third-party, -out and ARCHITECTURE=PROGRAM must be given")
	}
	dir, err := os.MkdirTemp("", "image")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	index, loaded, err := b.index(programs)
	if err != nil {
		return err
	}
	// Programs that load a layout look for one index, under its name, or under that for containerd.
	named := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex),
		mutate.IndexAddendum{Add: index, Descriptor: v1.Descriptor{Annotations: map[string]string{
			"org.opencontainers.image.ref.name": b.version,
			"io.containerd.image.name":          "docker.io/library/holdfast:" + b.version,
		}}})
	path, err := layout.Write(dir, named)
	if err != nil {
		return err
	}
	written, err := path.ImageIndex()
	if err != nil {
		return err
	}
	if err := validate.Index(written); err != nil {
		return err
	}
	text, err := json.Marshal(loaded)
	if err != nil {
		return err
	}
	return errors.Join(path.WriteFile("manifest.json", text, 0o644), pack(out, dir, b.date))
}

// index returns the index of all images, and what "docker load" is told of them.
func (b build) index(programs []string) (v1.ImageIndex, tarball.Manifest, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	var loaded tarball.Manifest
	for _, program := range programs {
		architecture, path, ok := strings.Cut(program, "=")
		if !ok {
			return nil, nil, fmt.Errorf("%q: it must be ARCHITECTURE=PROGRAM", program)
		}
		image, err := b.image(architecture, path)
		if err != nil {
			return nil, nil, err
		}
		platform := &v1.Platform{OS: "linux", Architecture: architecture}
		index = mutate.AppendManifests(index,
			mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: platform}})
		tags := []string{"holdfast:" + b.version + "-" + architecture}
		if len(loaded) == 0 {
			tags = append(tags, "holdfast:"+b.version)
		}
		manifest, err := image.Manifest()
		if err != nil {
			return nil, nil, err
		}
		loaded = append(loaded, describe(manifest, tags))
	}
	index, _ = mutate.Annotations(index, b.labels()).(v1.ImageIndex)
	return index, loaded, nil
}

// describe names the parts of an image for "docker load", which in Docker 20 reads no layout.
func describe(manifest *v1.Manifest, tags []string) tarball.Descriptor {
	blob := func(d v1.Descriptor) string { return "blobs/" + d.Digest.Algorithm + "/" + d.Digest.Hex }
	d := tarball.Descriptor{Config: blob(manifest.Config), RepoTags: tags}
	for _, layer := range manifest.Layers {
		d.Layers = append(d.Layers, blob(layer))
	}
	return d
}

// pack writes the files of a directory into a tar file, in the order of their names.
func pack(out, dir string, date time.Time) error {
	var files []file
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, name))
		files = append(files, file{name, 0o644, data})
		return err
	})
	var content bytes.Buffer
	if err := errors.Join(err, archive(&content, files, date)); err != nil {
		return err
	}
	if err := os.WriteFile(out, content.Bytes(), 0o644); err != nil {
		return errors.Join(err, os.Remove(out))
	}
	return nil
}

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
