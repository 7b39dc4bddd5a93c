// Package pause holds goroutines up, for command schedulejitter, whose rewritten sources call it.
package pause

// Seed is the variable of the environment with the seed. Where it is not set, no goroutine is held
// up.
const Seed = "HOLDFAST_NOISE"
