package telemetry

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// namespace is what the names of all metrics begin with.
const namespace = "mcp_bridge_"

// A Sample is one value of a metric at the moment of a scrape. All samples of one
// name have the same help and the same labels.
type Sample struct {
	Name    string // without the namespace
	Help    string
	Counter bool // it only grows; else it is a gauge
	Value   float64
	Labels  []string // names and values by turns; values come from the configuration, never from callers
}

// Metrics are the bridge's metrics for Prometheus.
type Metrics struct {
	registry *prometheus.Registry
	handler  http.Handler
	calls    *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

// NewMetrics returns metrics with the samples that collect returns at each scrape.
func NewMetrics(version string, collect func() []Sample) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: namespace + "calls_total", Help: "Calls that ended, by the server and the code of the problem, which is empty for a success.",
		}, []string{"server", "code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: namespace + "call_duration_seconds", Help: "How long calls took, from their arrival to their end.",
			Buckets: []float64{.001, .005, .02, .1, .5, 2, 10, 60, 600},
		}, []string{"server"}),
	}
	info := prometheus.NewGauge(prometheus.GaugeOpts{Name: namespace + "build_info", Help: "Always 1.", ConstLabels: prometheus.Labels{"version": version}})
	info.Set(1)
	m.registry.MustRegister(info, m.calls, m.duration, samples(collect), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.handler = promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
	return m
}

// Call counts a call that has ended. The server is one of the configuration's, or empty
// if the call named none of them.
func (m *Metrics) Call(server, code string, took time.Duration) {
	m.calls.WithLabelValues(server, code).Inc()
	m.duration.WithLabelValues(server).Observe(took.Seconds())
}

// ServeHTTP answers a scrape.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, r *http.Request) { m.handler.ServeHTTP(w, r) }

// samples is a collector of what a function says at each scrape.
type samples func() []Sample

// Describe implements [prometheus.Collector]. What there will be is not known before.
func (samples) Describe(chan<- *prometheus.Desc) {}

// Collect implements [prometheus.Collector].
func (s samples) Collect(ch chan<- prometheus.Metric) {
	for _, v := range s() {
		var names, values []string
		for i := 0; i+1 < len(v.Labels); i += 2 {
			names, values = append(names, v.Labels[i]), append(values, v.Labels[i+1])
		}
		kind := prometheus.GaugeValue
		if v.Counter {
			kind = prometheus.CounterValue
		}
		desc := prometheus.NewDesc(namespace+v.Name, v.Help, names, nil)
		m, err := prometheus.NewConstMetric(desc, kind, v.Value, values...)
		if err != nil {
			m = prometheus.NewInvalidMetric(desc, err)
		}
		ch <- m
	}
}
