// Command image makes an OCI image of holdfast for several architectures without a daemon, and
// writes it as a layout in a tar file:
//
//	image -version 1.2.3 -commit 0123abcd -date 2026-11-24T04:38:01Z -license LICENSE \
//	      -out image.tar amd64=PROGRAM arm64=PROGRAM
//
// The image has the program, the license, and the root certificates of Mozilla for rediss://. The
// certificates come from a Go module, at a fixed version. The image has no shell, and its user is
// no. 65532. The same arguments give the same bytes.
package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// A build says what the image is made of.
type build struct {
	version, commit, license string
	date                     time.Time
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("image: ")
	var b build
	var date, out string
	flag.StringVar(&b.version, "version", "", "version, without v")
	flag.StringVar(&b.commit, "commit", "", "commit")
	flag.StringVar(&b.license, "license", "", "file with the license")
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
	if b.version == "" || b.commit == "" || b.license == "" || out == "" || len(programs) == 0 {
		return errors.New("-version, -commit, -license, -out and ARCHITECTURE=PROGRAM must be given")
	}
	dir, err := os.MkdirTemp("", "image")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, program := range programs {
		architecture, path, ok := strings.Cut(program, "=")
		if !ok {
			return fmt.Errorf("%q: it must be ARCHITECTURE=PROGRAM", program)
		}
		image, err := b.image(architecture, path)
		if err != nil {
			return err
		}
		platform := &v1.Platform{OS: "linux", Architecture: architecture}
		index = mutate.AppendManifests(index,
			mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: platform}})
	}
	index, _ = mutate.Annotations(index, b.labels()).(v1.ImageIndex)

	// Programs that load a layout look for one index, under its name.
	named := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex),
		mutate.IndexAddendum{Add: index,
			Descriptor: v1.Descriptor{Annotations: map[string]string{"org.opencontainers.image.ref.name": b.version}}})
	if _, err := layout.Write(dir, named); err != nil {
		return err
	}
	written, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return err
	}
	if err := validate.Index(written); err != nil {
		return err
	}
	return pack(out, dir, b.date)
}
