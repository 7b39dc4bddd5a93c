package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"
)

// A file of a layer.
type file struct {
	name string
	mode int64
	data []byte
}

// archive packs files with their folders, whose owner is root.
func archive(files []file, date time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	made := map[string]bool{".": true}
	var folder func(name string) error
	folder = func(name string) error {
		if made[name] {
			return nil
		}
		made[name] = true
		if err := folder(path.Dir(name)); err != nil {
			return err
		}
		return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755, ModTime: date})
	}
	for _, f := range files {
		if err := folder(path.Dir(f.name)); err != nil {
			return nil, err
		}
		if err := add(w, f, date); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), w.Close()
}

func add(w *tar.Writer, f file, date time.Time) error {
	header := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Size: int64(len(f.data)), ModTime: date}
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	_, err := w.Write(f.data)
	return err
}

// pack writes the files of a directory into a tar file, in the order of their names. It leaves no
// file if it fails.
func pack(out, dir string, date time.Time) (err error) {
	target, err := os.Create(out)
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, target.Close()); err != nil {
			_ = os.Remove(out)
		}
	}()
	w := tar.NewWriter(io.Writer(target))
	err = filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		name, err = filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		return add(w, file{filepath.ToSlash(name), 0o644, data}, date)
	})
	return errors.Join(err, w.Close())
}
