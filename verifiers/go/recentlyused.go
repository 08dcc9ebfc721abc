package verifier

import "sync"

// recentlyUsed is a bounded cache in two halves. Entries in use move to the young half; when that is full, the old half
// is dropped and the young one becomes the old one.
type recentlyUsed[V any] struct {
	mu         sync.RWMutex
	young, old map[string]V
	half       int
}

func newRecentlyUsed[V any](size int) *recentlyUsed[V] {
	return &recentlyUsed[V]{young: map[string]V{}, old: map[string]V{}, half: size / 2}
}

func (c *recentlyUsed[V]) get(name string) (V, bool) {
	c.mu.RLock()
	value, ok := c.young[name]
	if ok {
		c.mu.RUnlock()
		return value, true
	}
	value, ok = c.old[name]
	c.mu.RUnlock()
	if ok {
		c.set(name, value)
	}
	return value, ok
}

func (c *recentlyUsed[V]) set(name string, value V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.young) >= c.half {
		c.old, c.young = c.young, map[string]V{}
	}
	c.young[name] = value
}
