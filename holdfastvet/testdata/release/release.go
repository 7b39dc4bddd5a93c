package release

import (
	"context"
	"errors"

	"github.com/holdfast-go/holdfast"
)

type owner struct{ lease *holdfast.Lease }

func work() error { return nil }

func dropped(ctx context.Context, m *holdfast.Mutex) {
	m.Lock(ctx)              // want `the lease of Lock is dropped`
	_, err := m.TryLock(ctx) // want `the lease of TryLock is dropped`
	_ = err
}

func forgotten(ctx context.Context, m *holdfast.Mutex) error {
	lease, err := m.Lock(ctx) // want `lease is not released on every way`
	if err != nil {
		return err
	}
	println(lease.Token())
	return work() // want `may be reached without lease.Release, of line`
}

func forgottenOnFailure(ctx context.Context, s *holdfast.Semaphore) error {
	permit, err := s.Acquire(ctx, 1) // want `permit is not released on every way`
	if err != nil {
		return err
	}
	if err := work(); err != nil {
		return err // want `may be reached without permit.Release`
	}
	return permit.Release()
}

func forgottenUnderItsContext(ctx context.Context, m *holdfast.RWMutex) error {
	lease, err := m.RLock(ctx) // want `lease is not released`
	if err == nil {
		ctx, cancel := lease.Bind(ctx)
		defer cancel()
		return ctx.Err() // want `may be reached`
	}
	return err
}

func released(ctx context.Context, m *holdfast.Mutex) error {
	lease, err := m.Lock(ctx)
	if err != nil {
		return err
	}
	defer lease.Release()
	return work()
}

func releasedUnlessBusy(ctx context.Context, m *holdfast.Mutex) error {
	lease, err := m.TryLock(ctx)
	if errors.Is(err, holdfast.ErrHeld) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = lease.Release() }()
	return work()
}

func releasedUnlessBusyAndTired(ctx context.Context, m *holdfast.Mutex, tired bool) error {
	lease, err := m.TryLock(ctx)
	if tired && errors.Is(err, holdfast.ErrHeld) {
		return nil
	}
	if lease == nil || (err != nil) {
		return err
	}
	return lease.Release()
}

func forgottenIfTired(ctx context.Context, m *holdfast.Mutex, tired bool) error {
	lease, err := m.TryLock(ctx) // want `lease is not released`
	if err == nil && tired {
		return nil // want `may be reached`
	}
	if err != nil {
		return err
	}
	return lease.Release()
}

func handedOn(ctx context.Context, m *holdfast.Mutex, o *owner, leases chan *holdfast.Lease) (*holdfast.Lease, error) {
	var err error
	if o.lease, err = m.Lock(ctx); err != nil {
		return nil, err
	}
	sent, err := m.Lock(ctx)
	if err != nil {
		return nil, err
	}
	leases <- sent
	detached, err := m.Lock(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := detached.Detach(); err != nil {
		return nil, err
	}
	return m.Lock(ctx)
}

func inALoop(ctx context.Context, m *holdfast.Mutex) {
	for {
		lease, err := m.Lock(ctx)
		if err != nil {
			continue
		}
		work()
		lease.Release()
	}
}
