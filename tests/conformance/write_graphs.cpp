// Writes graphs of ours for check_exports.py: write_graphs OUT. Each is a folder with graph.pb or
// graph.pbtxt, the feeds, what we compute, and case.json that names them.

#include <fstream>
#include <functional>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "tandem/fs/file_system.h"
#include "tandem/io/graph_export.h"
#include "tandem/io/graph_session.h"
#include "tandem/io/npy.h"
#include "tandem/runtime/function_calls.h"
#include "tandem/tandem.h"

namespace {

namespace td = tandem;
using td::Tensor;

class Writer {
 public:
  explicit Writer(std::string root) : root_(std::move(root)) {}

  /// `expected` is what TensorFlow must compute, in each of `steps` steps stacked if there are
  /// more.
  void write(const std::string& name, const td::ConcreteFunction& function,
             const std::vector<Tensor>& inputs, const std::vector<Tensor>& expected,
             td::io::ExportOptions options = {}, int steps = 1, const char* file = "graph.pb") {
    const std::string folder = root_ + "/" + name;
    td::fs::file_system_of(folder).make_directories(folder);
    const auto graph = td::io::write_graph_def(folder + "/" + file, function, std::move(options));
    nlohmann::ordered_json json{{"graph", file},
                                {"inits", nlohmann::json::array()},
                                {"targets", graph.targets},
                                {"steps", steps},
                                {"feeds", nlohmann::json::object()},
                                {"expected", nlohmann::json::object()}};
    if (!graph.init.empty()) json["inits"].push_back(graph.init);
    for (std::size_t i = 0; i < inputs.size(); ++i)
      json["feeds"][graph.inputs.at(i)] = save(folder, "feed", i, inputs[i]);
    for (std::size_t i = 0; i < expected.size(); ++i)
      json["expected"][graph.outputs.at(i)] = save(folder, "expected", i, expected[i]);
    td::fs::write_file(folder + "/case.json", json.dump(2));
  }

 private:
  static std::string save(const std::string& folder, const char* kind, std::size_t i,
                          const Tensor& value) {
    const std::string name = td::cat(kind, "_", i, ".npy");
    td::io::write_npy(folder + "/" + name, value.array());
    return name;
  }
  std::string root_;
};

void write_model(Writer& writer) {
  using namespace td::keras;
  const Sequential model{Input({12, 12, 2}),
                         Conv2D(4, 3, {.padding = "same", .activation = "relu"}),
                         BatchNormalization(),
                         MaxPooling2D(),
                         Flatten(),
                         Dense(5, {.activation = "softmax"})};
  const Tensor x = td::random::normal({3, 12, 12, 2});
  auto predict = td::function([&](Tensor in) { return model(in); },
                              {.name = "predict", .input_shapes = {{-1, 12, 12, 2}}});
  const std::vector<Tensor> expected{predict(x)};
  writer.write("keras_model", predict.concrete(x), {x}, expected,
               {.inputs = {"images"}, .outputs = {"probabilities"}});
  writer.write("keras_model_text", predict.concrete(x), {x}, expected, {}, 1, "graph.pbtxt");
  writer.write("keras_model_variables", predict.concrete(x), {x}, expected,
               {.variables = td::io::ExportVariables::kKeep});
}

void write_functions(Writer& writer) {
  auto inner = td::function([](Tensor a, Tensor b) {
    return std::pair{td::matmul(a, b), td::reduce_sum(a * b)};
  });
  const Tensor outside{{1.0, 2.0}, {3.0, 4.0}};
  auto outer = td::function([&](Tensor x) {
    auto [product, total] = inner(x, outside);
    auto [again, sum] = inner(product, x);
    return std::vector<Tensor>{again, total + sum, td::transpose(x)};
  });
  const Tensor x{{0.5, -1.0}, {2.0, 0.25}};
  writer.write("functions", outer.concrete(x), {x}, outer(x));
}

void write_control_flow(Writer& writer) {
  auto f = td::function([](Tensor x, Tensor n) {
    auto state = td::while_loop([&](const std::pair<Tensor, Tensor>& s) { return s.first < n; },
                                [&](const std::pair<Tensor, Tensor>& s) {
                                  Tensor next = td::cond(
                                      td::reduce_sum(s.second) > 3.0,
                                      [&] { return s.second / 2.0; }, [&] { return s.second + x; });
                                  return std::pair{s.first + 1, next};
                                },
                                std::pair{Tensor(0), x});
    return state.second;
  });
  const Tensor x{0.5, 1.0, -0.25}, n(6);
  writer.write("control_flow", f.concrete(x, n), {x, n}, {f(x, n)});
}

void write_switch_case(Writer& writer) {
  auto f = td::function([](Tensor index, Tensor x) {
    td::GradientTape tape;
    tape.watch(x);
    const Tensor y =
        td::switch_case(index, std::vector<std::function<Tensor()>>{
                                   [&] { return x * 2.0; }, [&] { return td::sin(x) * x; },
                                   [&] { return td::exp(x) + x * x; }});
    return std::vector<Tensor>{y, tape.gradient(y, x)};
  });
  const Tensor index(1), x{0.5, 1.0, -0.25};
  writer.write("switch_case", f.concrete(index, x), {index, x}, f(index, x));
}

void write_training(Writer& writer) {
  td::Variable w(td::random::normal({4, 1}).array()), b(0.0f);
  const Tensor x = td::random::normal({16, 4}), y = td::random::normal({16, 1});
  auto step = td::function([&](Tensor in, Tensor wanted) {
    td::GradientTape tape;
    const Tensor error = td::matmul(in, w.read_value()) + b.read_value() - wanted;
    const Tensor loss = td::reduce_mean(error * error);
    const auto gradients = tape.gradient(loss, std::vector<td::Variable>{w, b});
    w.assign_sub(0.1 * gradients[0]);
    b.assign_sub(0.1 * gradients[1]);
    return loss;
  });
  const auto concrete = step.concrete(x, y);
  constexpr int kSteps = 3;
  const Tensor w0 = w.read_value(), b0 = b.read_value();
  std::vector<Tensor> losses;
  for (int i = 0; i < kSteps; ++i) losses.push_back(step(x, y));
  w.assign(w0);
  b.assign(b0);
  writer.write("training", concrete, {x, y}, {td::stack(losses)},
               {.variables = td::io::ExportVariables::kKeep}, kSteps);
}

void write_dtypes(Writer& writer) {
  auto f = td::function([](Tensor x) {
    std::vector<Tensor> out;
    for (const td::DType dtype : {td::int8, td::uint16, td::int64, td::float16, td::bfloat16,
                                  td::float64, td::boolean, td::complex64})
      out.push_back(td::cast(td::concat({td::cast(x, dtype), td::cast(Tensor{1.0, 0.0}, dtype)}, 0),
                             dtype == td::bfloat16 ? td::float32 : dtype));
    out.push_back(td::split(x, 3, 0)[1]);
    return out;
  });
  const Tensor x{1.0, 2.0, 0.0};
  writer.write("dtypes", f.concrete(x), {x}, f(x));
}

// Filled by each step that uses them, or once by `init`; looked up in functions and branches, too.
void write_tables(Writer& writer) {
  using td::lookup::KeyValueTensorInitializer;
  const td::lookup::StaticHashTable prices(
      KeyValueTensorInitializer{.keys = Tensor{"apple", "pear", "plum"},
                                .values = Tensor{1.5, 2.0, -0.25}},
      9.0);
  const td::lookup::StaticHashTable names(
      KeyValueTensorInitializer{.keys = td::tensor<std::int64_t>({3, 1}),
                                .values = Tensor{"three", "one"}},
      "many");
  const td::lookup::StaticVocabularyTable words(
      KeyValueTensorInitializer{.keys = Tensor{"plum", "apple"},
                                .values = td::tensor<std::int64_t>({0, 1})},
      5);
  auto inner = td::function([&](Tensor x) { return td::reduce_sum(prices.lookup(x)); });
  auto f = td::function([&](Tensor x, Tensor n) {
    const Tensor total = td::cond(
        td::reduce_sum(n) > Tensor(std::int64_t{3}), [&] { return inner(x); },
        [&] { return td::reduce_max(prices.lookup(x)); });
    return std::vector<Tensor>{prices.lookup(x), names.lookup(n), words.lookup(x), total,
                               prices.size()};
  });
  const Tensor x{"plum", "quince", "apple"}, n = td::tensor<std::int64_t>({1, 2, 3});
  std::vector<Tensor> twice;
  for (const Tensor& value : f(x, n)) twice.push_back(td::stack(std::vector<Tensor>{value, value}));
  writer.write("tables", f.concrete(x, n), {x, n}, twice, {}, 2);
  writer.write("tables_initialised", f.concrete(x, n), {x, n}, twice,
               {.variables = td::io::ExportVariables::kKeep}, 2);
}

// while i < 4: x = x * x + 0.5, i += 1, as TensorFlow 1 writes it.
constexpr const char* kFrames = R"(
node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } }
       attr { key: 'shape' value { shape { dim { size: 2 } } } } }
node { name: 'zero' op: 'Const' attr { key: 'dtype' value { type: DT_INT32 } }
       attr { key: 'value' value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 0 } } } }
node { name: 'enter_i' op: 'Enter' input: 'zero' attr { key: 'T' value { type: DT_INT32 } }
       attr { key: 'frame_name' value { s: 'loop' } } }
node { name: 'enter_x' op: 'Enter' input: 'x' attr { key: 'T' value { type: DT_FLOAT } }
       attr { key: 'frame_name' value { s: 'loop' } } }
node { name: 'merge_i' op: 'Merge' input: 'enter_i' input: 'next_i'
       attr { key: 'N' value { i: 2 } } attr { key: 'T' value { type: DT_INT32 } } }
node { name: 'merge_x' op: 'Merge' input: 'enter_x' input: 'next_x'
       attr { key: 'N' value { i: 2 } } attr { key: 'T' value { type: DT_FLOAT } } }
node { name: 'four' op: 'Const' input: '^merge_i' attr { key: 'dtype' value { type: DT_INT32 } }
       attr { key: 'value' value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 4 } } } }
node { name: 'less' op: 'Less' input: 'merge_i' input: 'four'
       attr { key: 'T' value { type: DT_INT32 } } }
node { name: 'go_on' op: 'LoopCond' input: 'less' }
node { name: 'switch_i' op: 'Switch' input: 'merge_i' input: 'go_on'
       attr { key: 'T' value { type: DT_INT32 } } }
node { name: 'switch_x' op: 'Switch' input: 'merge_x' input: 'go_on'
       attr { key: 'T' value { type: DT_FLOAT } } }
node { name: 'i' op: 'Identity' input: 'switch_i:1' attr { key: 'T' value { type: DT_INT32 } } }
node { name: 'one' op: 'Const' input: '^i' attr { key: 'dtype' value { type: DT_INT32 } }
       attr { key: 'value' value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 1 } } } }
node { name: 'half' op: 'Const' input: '^i' attr { key: 'dtype' value { type: DT_FLOAT } }
       attr { key: 'value' value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 0.5 } } } }
node { name: 'square' op: 'Mul' input: 'switch_x:1' input: 'switch_x:1'
       attr { key: 'T' value { type: DT_FLOAT } } }
node { name: 'more' op: 'AddV2' input: 'square' input: 'half'
       attr { key: 'T' value { type: DT_FLOAT } } }
node { name: 'up' op: 'AddV2' input: 'i' input: 'one' attr { key: 'T' value { type: DT_INT32 } } }
node { name: 'next_i' op: 'NextIteration' input: 'up' attr { key: 'T' value { type: DT_INT32 } } }
node { name: 'next_x' op: 'NextIteration' input: 'more'
       attr { key: 'T' value { type: DT_FLOAT } } }
node { name: 'out' op: 'Exit' input: 'switch_x' attr { key: 'T' value { type: DT_FLOAT } } }
)";

// An imported step whose loop is in frames, called twice by a traced function.
void write_frames(Writer& writer) {
  const td::io::GraphSession session(
      td::io::import_graph_def(kFrames, {.format = td::io::GraphFormat::kText}));
  const td::FunctionRef loop = session.prepare({"x"}, {"out"}).function();
  const auto looped = [&](Tensor x) { return td::call_function(loop, std::vector<Tensor>{x})[0]; };
  auto f = td::function([&](Tensor x) {
    const Tensor once = looped(x);
    return std::vector<Tensor>{once, looped(once * 0.25)};
  });
  const Tensor x{0.5, -0.25};
  writer.write("frames", f.concrete(x), {x}, f(x));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: write_graphs OUT\n";
    return 2;
  }
  td::random::set_seed(5);
  Writer writer(argv[1]);
  write_model(writer);
  write_functions(writer);
  write_control_flow(writer);
  write_switch_case(writer);
  write_training(writer);
  write_dtypes(writer);
  write_tables(writer);
  write_frames(writer);
  return 0;
}
