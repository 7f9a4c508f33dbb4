// oneDNN's deconvolution primitive, timed on request: a line on stdin asks, a JSON line on stdout answers.
//
//   LAYOUT TYPE SECONDS D N CIN COUT G  in…  k…  s…  pads begin…  pads end…  dilations…     (D of each, dilation 1 for none)
//
// Layout ncx answers with
//   onednn_plain   the layouts oneDNN prefers inside, with the reorders that a caller of plain tensors pays
//   onednn_native  channels first inside as well, where an optimised implementation has it
// and layout nxc with
//   onednn_any     the layouts oneDNN prefers, execution only: its best case, whatever it costs to get there
//   onednn_nxc     channels last inside, where an optimised implementation has it
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <iostream>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

#include <dnnl.hpp>

using dnnl::memory;
using tag = memory::format_tag;
using clock_type = std::chrono::steady_clock;

static double seconds_since(clock_type::time_point begin) {
    return std::chrono::duration<double>(clock_type::now() - begin).count();
}

static double median_ms(double budget, const std::function<void()> &call) {
    call();
    call();
    std::vector<double> times;
    const auto start = clock_type::now();
    while (times.size() < 5 || (seconds_since(start) < budget && times.size() < 10000)) {
        const auto begin = clock_type::now();
        call();
        times.push_back(seconds_since(begin));
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2] * 1e3;
}

struct Layer {
    std::string layout;
    memory::data_type type;
    double seconds;
    memory::dims source, target, weights, strides, pads_begin, pads_end, dilations;
    memory::dim out_channels;
};

static bool read(const std::string &line, Layer &layer) {
    std::istringstream in(line);
    int axes;
    std::string type;
    memory::dim batch, in_channels, groups;
    in >> layer.layout >> type >> layer.seconds >> axes >> batch >> in_channels >> layer.out_channels >> groups;
    if (!in || axes < 1 || axes > 3 || groups < 1) return false;
    layer.type = type == "bf16" ? memory::data_type::bf16
            : type == "f16"     ? memory::data_type::f16
            : type == "i8"      ? memory::data_type::s8
                                : memory::data_type::f32;
    const auto list = [&] {
        memory::dims values(axes);
        for (auto &value : values) in >> value;
        return values;
    };
    const memory::dims input = list(), kernel = list();
    layer.strides = list();
    layer.pads_begin = list();
    layer.pads_end = list();
    layer.dilations = list();
    layer.source = {batch, in_channels};
    layer.target = {batch, layer.out_channels};
    layer.weights = {layer.out_channels / groups, in_channels / groups};
    if (groups > 1) layer.weights.insert(layer.weights.begin(), groups);
    for (int axis = 0; axis < axes; axis++) {
        layer.dilations[axis] -= 1;
        layer.source.push_back(input[axis]);
        layer.weights.push_back(kernel[axis]);
        layer.target.push_back((input[axis] - 1) * layer.strides[axis] + (kernel[axis] - 1) * (layer.dilations[axis] + 1)
                + 1 - layer.pads_begin[axis] - layer.pads_end[axis]);
    }
    return !in.fail();
}

// The primitive with its memory, for tensors in one layout.
class Deconvolution {
public:
    Deconvolution(const Layer &layer, const dnnl::engine &engine, tag layout)
        : desc_(engine, dnnl::prop_kind::forward_inference, dnnl::algorithm::deconvolution_direct,
                memory::desc(layer.source, layer.type, layout),
                memory::desc(layer.weights, layer.type, tag::any),
                memory::desc({layer.out_channels}, memory::data_type::f32, tag::a),
                memory::desc(layer.target, layer.type, layout), layer.strides, layer.dilations,
                layer.pads_begin, layer.pads_end, attributes(layer))
        , primitive_(desc_)
        , source(filled(desc_.src_desc(), engine))
        , target(filled(desc_.dst_desc(), engine))
        , arguments_ {{DNNL_ARG_SRC, source}, {DNNL_ARG_WEIGHTS, filled(desc_.weights_desc(), engine)},
                  {DNNL_ARG_BIAS, filled(desc_.bias_desc(), engine)}, {DNNL_ARG_DST, target}} {
        if (layer.type != memory::data_type::s8) return;
        add_scales(DNNL_ARG_SRC, 1, 1.0f / 127.0f, engine);
        add_scales(DNNL_ARG_WEIGHTS, layer.out_channels, 1.0f / 127.0f, engine);
        add_scales(DNNL_ARG_DST, 1, 0.25f, engine);
    }

    void execute(dnnl::stream &stream) const { primitive_.execute(stream, arguments_); }

    bool is_reference() const { return std::strstr(desc_.impl_info_str(), "ref") != nullptr; }

    // Numbers from -1 to 1, as everybody else has them: products of zeros need less power, so they are faster. Bytes are
    // spread over all their values.
    static memory filled(const memory::desc &desc, const dnnl::engine &engine) {
        static const tag plain[] = {tag::a, tag::ab, tag::abc, tag::abcd, tag::abcde, tag::abcdef};
        const memory::dims dims = desc.get_dims();
        memory numbers({dims, memory::data_type::f32, plain[dims.size() - 1]}, engine);
        const float greatest = desc.get_data_type() == memory::data_type::s8 ? 127.0f : 1.0f;
        float *values = static_cast<float *>(numbers.get_data_handle());
        uint32_t state = 1;
        for (size_t i = 0; i < numbers.get_desc().get_size() / sizeof(float); i++) {
            state = state * 1664525u + 1013904223u;
            values[i] = greatest * static_cast<float>(static_cast<int32_t>(state)) / 2147483648.0f;
        }
        memory result(desc, engine);
        std::memset(result.get_data_handle(), 0, desc.get_size());
        dnnl::stream stream(engine);
        dnnl::reorder(numbers, result).execute(stream, numbers, result);
        stream.wait();
        return result;
    }

private:
    // Bytes have scales: those of weights per output channel, which is the first axis, or the second behind groups.
    static dnnl::primitive_attr attributes(const Layer &layer) {
        dnnl::primitive_attr attributes;
        if (layer.type == memory::data_type::s8) {
            const bool groups = layer.weights.size() > layer.source.size();
            attributes.set_scales_mask(DNNL_ARG_SRC, 0);
            attributes.set_scales_mask(DNNL_ARG_WEIGHTS, groups ? 3 : 1);
            attributes.set_scales_mask(DNNL_ARG_DST, 0);
        }
        return attributes;
    }

    void add_scales(int argument, memory::dim count, float scale, const dnnl::engine &engine) {
        memory scales({{count}, memory::data_type::f32, tag::a}, engine);
        std::fill_n(static_cast<float *>(scales.get_data_handle()), count, scale);
        arguments_[DNNL_ARG_ATTR_SCALES | argument] = scales;
    }

    dnnl::deconvolution_forward::primitive_desc desc_;
    dnnl::deconvolution_forward primitive_;

public:
    memory source, target;

private:
    std::unordered_map<int, memory> arguments_;
};

class Answer {
public:
    void add(const char *name, double ms) {
        char text[64];
        std::snprintf(text, sizeof text, "%s\"%s\": %.6f", entries_.empty() ? "" : ", ", name, ms);
        entries_ += text;
    }
    void print() const {
        std::printf("{\"ms\": {%s}}\n", entries_.c_str());
        std::fflush(stdout);
    }

private:
    std::string entries_;
};

static void time_native(const Layer &layer, const dnnl::engine &engine, dnnl::stream &stream, tag layout,
        const char *name, Answer &answer) {
    try {
        const Deconvolution native(layer, engine, layout);
        // The reference implementation is minutes away from being a competitor.
        if (native.is_reference()) return;
        answer.add(name, median_ms(layer.seconds, [&] {
            native.execute(stream);
            stream.wait();
        }));
    } catch (const dnnl::error &) {
    }
}

static void time_layer(const Layer &layer, const dnnl::engine &engine, dnnl::stream &stream) {
    static const tag first[] = {tag::abc, tag::abcd, tag::abcde}, last[] = {tag::acb, tag::acdb, tag::acdeb};
    const size_t axes = layer.strides.size();
    const bool channels_last = layer.layout == "nxc";
    Answer answer;
    try {
        const Deconvolution any(layer, engine, tag::any);
        if (channels_last) {
            answer.add("onednn_any", median_ms(layer.seconds, [&] {
                any.execute(stream);
                stream.wait();
            }));
        } else {
            memory source = Deconvolution::filled({layer.source, layer.type, first[axes - 1]}, engine);
            memory target = Deconvolution::filled({layer.target, layer.type, first[axes - 1]}, engine);
            memory inner_source = any.source, inner_target = any.target;
            const bool reorder_source = source.get_desc() != inner_source.get_desc();
            const bool reorder_target = target.get_desc() != inner_target.get_desc();
            dnnl::reorder in(source, inner_source), out(inner_target, target);
            answer.add("onednn_plain", median_ms(layer.seconds, [&] {
                if (reorder_source) in.execute(stream, source, inner_source);
                any.execute(stream);
                if (reorder_target) out.execute(stream, inner_target, target);
                stream.wait();
            }));
        }
    } catch (const dnnl::error &) {
    }
    if (channels_last) {
        time_native(layer, engine, stream, last[axes - 1], "onednn_nxc", answer);
    } else {
        time_native(layer, engine, stream, first[axes - 1], "onednn_native", answer);
    }
    answer.print();
}

int main() {
    dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    dnnl::stream stream(engine);
    std::string line;
    while (std::getline(std::cin, line)) {
        Layer layer;
        if (read(line, layer)) {
            time_layer(layer, engine, stream);
        } else {
            std::printf("{\"ms\": {}, \"why\": \"the request is malformed\"}\n");
            std::fflush(stdout);
        }
    }
}
