// Command recorder runs the decisions of the real kube-scheduler v1.36.4. It
// reads one JSON case per line on stdin and writes one JSON result per line on
// stdout, in the same order; the type "result" has its fields.
//
// Every plugin, the scheduler cache, the snapshot, the framework runtime, the
// configuration loading and the preemption evaluator are the unmodified
// upstream packages. Only the informers are replaced: they are static, hold
// the objects of the case and deliver them synchronously to the handlers, so
// that a case needs no goroutine and no polling.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

func main() {
	klog.InitFlags(nil)
	_ = flag.Set("logtostderr", "false")
	_ = flag.Set("stderrthreshold", "FATAL")
	embed := flag.Bool("pairs", false, "write {\"case\": ..., \"expect\": ...} instead of the result only")
	timing := flag.Bool("timing", false, "write the time used to stderr")
	seconds := flag.Bool("seconds", false, "add the CPU time of the scheduling cycle to each result")
	flag.Parse()
	klog.SetOutput(io.Discard)
	debug.SetGCPercent(400)
	metrics.Register()

	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	defer out.Flush()
	start, count := time.Now(), 0
	for {
		line, err := in.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			var res *result
			tc := &testCase{}
			if uerr := json.Unmarshal(line, tc); uerr != nil {
				res = &result{Error: "case: " + uerr.Error()}
			} else {
				res = evaluate(tc, *seconds)
			}
			var buf bytes.Buffer
			enc := json.NewEncoder(&buf)
			enc.SetEscapeHTML(false)
			if eerr := enc.Encode(res); eerr != nil {
				buf.Reset()
				_ = enc.Encode(&result{Name: tc.Name, Error: "encoding: " + eerr.Error()})
			}
			if *embed {
				var compact bytes.Buffer
				if cerr := json.Compact(&compact, line); cerr != nil {
					compact.Reset()
					compact.WriteString("null")
				}
				fmt.Fprintf(out, "{\"case\":%s,\"expect\":%s}\n", compact.Bytes(), bytes.TrimSpace(buf.Bytes()))
			} else {
				_, _ = out.Write(buf.Bytes())
			}
			count++
			if in.Buffered() == 0 {
				_ = out.Flush()
			}
		}
		if err != nil {
			break
		}
	}
	if *timing && count > 0 {
		d := time.Since(start)
		fmt.Fprintf(os.Stderr, "%d cases, %v, %v per case\n", count, d.Round(time.Millisecond), (d / time.Duration(count)).Round(time.Microsecond))
	}
}
