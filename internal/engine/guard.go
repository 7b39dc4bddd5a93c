package engine

import "sync"

// A guard is the engine's mutex. No request and no code of a caller runs while it is held. A
// goroutine that holds it queues such an effect, and Unlock runs the effects in their order.
type guard struct {
	mu      sync.Mutex
	effects []func() // of the goroutine that holds mu
}

// Lock locks the engine.
func (g *guard) Lock() { g.mu.Lock() }

// Unlock unlocks the engine, and then runs what was queued since Lock.
func (g *guard) Unlock() {
	effects := g.effects
	g.effects = nil
	g.mu.Unlock()
	for _, effect := range effects {
		effect()
	}
}

// after queues an effect. It is called with the mutex held.
func (g *guard) after(effect func()) { g.effects = append(g.effects, effect) }

// warn queues a line of the log. It is called with the mutex held.
func (e *Engine) warn(message string, values ...any) {
	e.mu.after(func() { e.config.Logger.Warn(message, values...) })
}
