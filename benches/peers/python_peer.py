"""One Python peer, timed on request: a JSON line on stdin asks, a JSON line on stdout answers.

    python_peer.py ort|ov|torch THREADS

    {"layer": {...}, "model": "path.onnx", "layout": "ncx", "dtype": "f32", "seconds": 0.4}
        ->   {"ms": {"ort": 1.25}}

Weights are constant, so that a peer may lay them out once; input and output are plain tensors. What a peer prepares is
kept for the next request about the same layer.
"""

import json
import statistics
import sys
import time

import numpy as np


def median_ms(call, seconds):
    call()
    call()
    times = []
    end = time.perf_counter() + seconds
    while len(times) < 5 or (time.perf_counter() < end and len(times) < 10_000):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return statistics.median(times) * 1e3


def input_of(layer):
    shape = [layer["n"], layer["cin"], *layer["in"]]
    return np.random.default_rng(1).uniform(-1, 1, shape).astype(np.float32)


def prepare_ort(request, threads):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(request["model"], options, providers=["CPUExecutionProvider"])
    x = input_of(request["layer"])
    y = session.run(None, {"x": x})[0]
    # Bound memory is read and written in place, as a caller in a hurry would have it.
    binding = session.io_binding()
    x, y = onnxruntime.OrtValue.ortvalue_from_numpy(x), onnxruntime.OrtValue.ortvalue_from_numpy(y)
    binding.bind_ortvalue_input("x", x)
    binding.bind_ortvalue_output("y", y)
    return {"ort": lambda: session.run_with_iobinding(binding)}


def prepare_ov(request, threads):
    import openvino

    settings = {
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": request["dtype"],
    }
    infer = openvino.Core().compile_model(request["model"], "CPU", settings).create_infer_request()
    infer.set_input_tensor(openvino.Tensor(input_of(request["layer"])))
    return {"ov": lambda: infer.infer(share_inputs=True, share_outputs=True)}


def prepare_torch(request, threads):
    import torch

    torch.set_num_threads(threads)
    layer = request["layer"]
    if layer["pe"] != layer["p"]:
        raise ValueError("PyTorch pads both sides alike")
    kind = {1: torch.nn.ConvTranspose1d, 2: torch.nn.ConvTranspose2d, 3: torch.nn.ConvTranspose3d}[layer["d"]]
    module = kind(
        layer["cin"],
        layer["cout"],
        layer["k"],
        stride=layer["s"],
        padding=layer["p"],
        output_padding=layer["op"],
        groups=layer["g"],
        dilation=layer["dil"],
    ).eval()
    dtype = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}[request["dtype"]]
    module, x = module.to(dtype), torch.from_numpy(input_of(layer)).to(dtype)
    name = "torch"
    if request["layout"] == "nxc":
        formats = {2: torch.channels_last, 3: torch.channels_last_3d}
        if layer["d"] not in formats:
            raise ValueError("PyTorch has no channels-last format of one axis")
        module, x = module.to(memory_format=formats[layer["d"]]), x.to(memory_format=formats[layer["d"]])
        name = "torch_channels_last"

    def call():
        with torch.inference_mode():
            module(x)

    return {name: call}


def main():
    peer, threads = sys.argv[1], int(sys.argv[2])
    prepare = {"ort": prepare_ort, "ov": prepare_ov, "torch": prepare_torch}[peer]
    key, calls = None, {}
    for line in sys.stdin:
        request = json.loads(line)
        try:
            asked = (request["layer"]["id"], request["layout"], request["dtype"])
            if key != asked:
                calls = {}
                calls = prepare(request, threads)
                key = asked
            answer = {"ms": {name: median_ms(call, request["seconds"]) for name, call in calls.items()}}
        except Exception as error:  # Whatever the peer throws is its answer.
            answer = {"ms": {}, "why": str(error)[:200]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
