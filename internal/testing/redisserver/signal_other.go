//go:build !unix

package redisserver

import "errors"

func (p *process) stop() error   { return errors.ErrUnsupported }
func (p *process) resume() error { return errors.ErrUnsupported }
