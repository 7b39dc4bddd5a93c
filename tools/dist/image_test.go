package dist

import (
	"bytes"
	"crypto/x509"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/holdfast-go/holdfast/internal/testing/fatal"
)

// image: its layers, unpacked to a root, run; its configuration says how.
func (f *files) image(t *testing.T) {
	dir := t.TempDir()
	run(t, "tar", "-xf", f.path("image.tar"), "-C", dir)
	index, err := layout.ImageIndexFromPath(dir)
	fatal.If(t, err)
	fatal.If(t, validate.Index(index))
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("index.json has %d manifests: %v", len(manifest.Manifests), err)
	}
	// Podman 4 and containerd name what they load after this annotation.
	named := manifest.Manifests[0].Annotations["io.containerd.image.name"]
	if named != "docker.io/library/holdfast:"+version {
		t.Errorf("the image is named %q", named)
	}
	index, err = index.ImageIndex(manifest.Manifests[0].Digest)
	fatal.If(t, err)
	if manifest, err = index.IndexManifest(); err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, m := range manifest.Manifests {
		platforms = append(platforms, m.Platform.String())
		image, err := index.Image(m.Digest)
		fatal.If(t, err)
		checkConfig(t, image, m.Platform.Architecture)
		if m.Platform.Architecture == runtime.GOARCH {
			f.imageRuns(t, image)
		}
	}
	if !slices.Equal(platforms, []string{"linux/amd64", "linux/arm64"}) {
		t.Errorf("the image is for %v", platforms)
	}
	for reference, architecture := range map[string]string{"holdfast:" + version: "amd64",
		"holdfast:" + version + "-amd64": "amd64", "holdfast:" + version + "-arm64": "arm64"} {
		f.imageLoads(t, reference, architecture)
	}
	if path, err := exec.LookPath("skopeo"); err == nil {
		out := run(t, path, "inspect", "--raw", "oci-archive:"+f.path("image.tar"))
		t.Logf("skopeo reads it: %d bytes", len(out))
	}
}

func checkConfig(t *testing.T, image v1.Image, architecture string) {
	t.Helper()
	config, err := image.ConfigFile()
	fatal.If(t, err)
	if c := config.Config; c.User != "65532:65532" || !slices.Equal(c.Entrypoint, []string{"/usr/bin/holdfast"}) ||
		config.Architecture != architecture || c.Labels["org.opencontainers.image.version"] != version {
		t.Errorf("the configuration is %+v", config)
	}
}

// imageRuns runs the program in the root of an image.
func (f *files) imageRuns(t *testing.T, image v1.Image) {
	root := t.TempDir()
	unpack := exec.Command("tar", "-x", "-C", root)
	unpack.Stdin = mutate.Extract(image)
	mustOutput(t, unpack)
	f.runsIn(t, root, "--userspec=65532:65532")
	if !bytes.Contains(mustRead(t, filepath.Join(root, "usr/share/doc/holdfast/THIRD_PARTY.txt")), []byte("go-redis")) {
		t.Error("the image has no licenses of others")
	}
	if !x509.NewCertPool().AppendCertsFromPEM(mustRead(t, filepath.Join(root, "etc/ssl/certs/ca-certificates.crt"))) {
		t.Error("the image has no root certificates")
	}
}

// imageLoads reads the file as "docker load" of Docker 20 does, which knows no layout.
func (f *files) imageLoads(t *testing.T, reference, architecture string) {
	tag, err := name.NewTag(reference)
	fatal.If(t, err)
	image, err := tarball.ImageFromPath(f.path("image.tar"), &tag)
	if err != nil {
		t.Fatalf("%s: %v", reference, err)
	}
	if err := validate.Image(image); err != nil {
		t.Errorf("%s: %v", reference, err)
	}
	checkConfig(t, image, architecture)
}
