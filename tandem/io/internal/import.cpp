#include "tandem/io/internal/import.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/device/device_spec.h"
#include "tandem/graph/function_shapes.h"
#include "tandem/io/internal/body_import.h"
#include "tandem/io/internal/stand_in.h"
#include "tandem/io/internal/tensor_proto.h"
#include "tandem/io/internal/wire.h"
#include "tandem/runtime/runtime.h"

namespace tandem::io {
namespace {

constexpr std::size_t kDeepestNesting = 100;
// Outputs that a graph may announce by a number rather than by listing them.
constexpr std::int64_t kMaxOutputs = 1 << 20;

// An error shows the first problems of a graph; up to this many are compared, so that each is
// reported once.
constexpr std::size_t kMaxShown = 20;
constexpr std::size_t kMaxReported = 1000;

class GraphImport final : public Library {
 public:
  GraphImport(proto::GraphDef& def, const ImportOptions& options,
              const LibraryOptions& library = {})
      : def_(def), options_(options), library_(library), runtime_(Runtime::current()) {
    for (const proto::GradientDef& gradient : def.library->gradient) {
      gradients_.emplace(
          gradient.function_name,
          ImportedGradient{.function = gradient.gradient_func, .takes_inputs = true});
    }
  }

  ImportedGraph run() {
    const InferenceMemory memory;
    check_versions();
    static_cast<void>(DeviceSpec::parse(options_.device));
    list_library();
    BodyImport body(*this, def_.node, nullptr, nullptr);
    try {
      result_.graph = std::make_shared<const Graph>(body.run());
    } catch (
        const InvalidArgumentError& error) {  // such as a cycle: nothing further can be reported
      add_problem(error.what());
    }
    if (!problems_.empty()) throw InvalidArgumentError(describe_problems());
    if (!result_.unsupported.empty() && !options_.allow_unsupported) {
      throw UnimplementedError(cat("This build cannot run ", result_.unsupported.size(), " node",
                                   result_.unsupported.size() == 1 ? "" : "s", " of ",
                                   options_.name, ":", describe_unsupported(result_.unsupported)));
    }
    return std::move(result_);
  }

  // Before functions are asked for one by one.
  void begin() {
    check_versions();
    list_library();
  }
  FunctionRef function(const std::string& name) {
    const InferenceMemory memory;
    problems_.clear();
    num_problems_ = 0;
    reported_.clear();
    running_.clear();
    proto::NameAttrList wanted;
    wanted.name = name;
    FunctionRef function = import(wanted);
    result_.unsupported.clear();
    if (!problems_.empty()) throw InvalidArgumentError(describe_problems());
    std::set<const Function*> seen;
    list_unsupported(*function, seen);
    if (!result_.unsupported.empty()) {
      const std::size_t count = result_.unsupported.size();
      throw UnimplementedError(cat("This build cannot run ", count, count == 1 ? " node" : " nodes",
                                   " of function '", name, "' of ", options_.name, ":",
                                   describe_unsupported(result_.unsupported)));
    }
    return function;
  }

  const proto::FunctionDef* find(const std::string& name) const override {
    const auto found = functions_.find(name);
    return found == functions_.end() ? nullptr : found->second;
  }

  FunctionRef import(const proto::NameAttrList& name) override {
    const auto found = functions_.find(name.name);
    if (found == functions_.end()) {
      throw InvalidArgumentError(
          cat("Function '", name.name, "' is called but is not in the graph's library."));
    }
    proto::FunctionDef* def = found->second;
    std::string key = name.name;
    if (def->signature->attr.size() > 0) {  // else attributes of the call change nothing
      std::map<std::string, std::string> attrs;
      for (const auto& [attr, value] : name.attr) attrs[attr] = proto::WireWriter::write(value);
      for (const auto& [attr, value] : attrs) {
        key += cat('\n', attr.size(), attr);
        key += value;  // bytes
      }
    }
    if (const auto done = imported_.find(key); done != imported_.end()) return done->second;
    if (const auto refused = refused_.find(key); refused != refused_.end()) {
      throw InvalidArgumentError(refused->second);
    }
    enter(name.name);
    FunctionRef function;
    try {
      function = import_body(*def, name.attr);
    } catch (const InvalidArgumentError& error) {
      running_.pop_back();
      refused_.emplace(key, error.what());
      throw;
    }
    running_.pop_back();
    imported_.emplace(key, function);
    result_.functions.push_back(function);
    return function;
  }

  void add_unsupported(UnsupportedNode node) override {
    result_.unsupported.push_back(std::move(node));
  }
  void add_problem(const std::string& message) override {
    if (reported_.size() < kMaxReported && !reported_.insert(message).second) return;
    ++num_problems_;
    if (problems_.size() < kMaxShown) problems_.push_back(message);
  }
  Runtime& runtime() const override { return runtime_; }
  const std::string& device() const override { return options_.device; }

  const ImportedGradient* gradient_of_node(const std::string& op_type,
                                           const std::string& body) const override {
    return library_.gradient ? library_.gradient(op_type, body) : nullptr;
  }
  const ImportedGradient* gradient_of_function(const std::string& name) const override {
    const auto found = gradients_.find(name);
    return found == gradients_.end() ? nullptr : &found->second;
  }
  const std::string& shared_name_suffix() const override { return library_.shared_name_suffix; }

  void count_outputs(std::int64_t outputs) override {
    if (outputs <= 16) return;
    if (outputs > kMaxOutputs || (announced_ += outputs) > kMaxOutputs) {
      throw InvalidArgumentError(
          cat("The nodes of ", options_.name, " announce more than ", kMaxOutputs, " outputs."));
    }
  }

 private:
  // Nodes of a function and of those that it calls that cannot run. Gradients are another matter:
  // they are looked at when they are needed.
  void list_unsupported(const Function& function, std::set<const Function*>& seen) {
    if (!seen.insert(&function).second) return;
    for (const auto& node : function.body().nodes()) {
      if (const std::string* why = why_unsupported(*node)) {
        const AttrValue* op = node->attrs().find(kOpAttr);
        const auto* name = op ? op->get_if<std::string>() : nullptr;
        result_.unsupported.push_back({.name = node->name(),
                                       .op = name ? *name : node->op().name,
                                       .function = function.name(),
                                       .reason = why->empty() ? "it is malformed" : *why,
                                       .nearest = {}});
      }
      for (const auto& [attr, value] : node->attrs()) {
        if (attr.starts_with("_")) continue;
        if (const auto* f = value.get_if<FunctionRef>(); f && *f) list_unsupported(**f, seen);
        if (const auto* list = value.get_if<std::vector<FunctionRef>>()) {
          for (const FunctionRef& f : *list) list_unsupported(*f, seen);
        }
      }
    }
  }

  // One alone is its own text. The rest of a text of several lines is indented below its first.
  std::string describe_problems() const {
    if (num_problems_ == 1 && result_.unsupported.empty()) return problems_[0];
    std::string text = num_problems_ == 1
                           ? cat("Something is wrong in ", options_.name, ":")
                           : cat(num_problems_, " things are wrong in ", options_.name, ":");
    for (const std::string& problem : problems_) {
      text += "\n  ";
      for (const char c : problem) text += c == '\n' ? "\n    " : std::string(1, c);
    }
    if (num_problems_ > problems_.size()) {
      text += cat("\n  and ", num_problems_ - problems_.size(), " more");
    }
    if (!result_.unsupported.empty()) {
      text += cat("\nBesides, this build cannot run ", result_.unsupported.size(),
                  result_.unsupported.size() == 1 ? " node:" : " nodes:",
                  describe_unsupported(result_.unsupported));
    }
    return text;
  }

  void check_versions() {
    result_.producer = def_.versions->producer;
    result_.min_consumer = def_.versions->min_consumer;
    if (result_.producer < 0 || result_.min_consumer < 0)
      throw InvalidArgumentError(cat("The versions of ", options_.name, " are negative."));
    if (result_.min_consumer > kGraphDefVersion) {
      throw UnimplementedError(cat("Readers of ", options_.name, " must know version ",
                                   result_.min_consumer, " of GraphDef; this build knows ",
                                   kGraphDefVersion, "."));
    }
    const auto& bad = def_.versions->bad_consumers;
    if (std::find(bad.begin(), bad.end(), kGraphDefVersion) != bad.end()) {
      throw UnimplementedError(cat(options_.name, " says that readers of version ",
                                   kGraphDefVersion, " cannot run it."));
    }
  }

  void list_library() {
    for (proto::FunctionDef& def : def_.library.make().function) {
      const std::string& name = def.signature->name;
      if (name.empty()) throw InvalidArgumentError("A function of the library has no name.");
      if (runtime_.ops().find(name)) {  // else nodes of the op would call the function
        throw InvalidArgumentError(cat("Cannot add function '", name,
                                       "' of the library because an op with the same name already "
                                       "exists. Rename the function."));
      }
      if (!functions_.emplace(name, &def).second)
        throw InvalidArgumentError(cat("Function '", name, "' is in the library twice."));
      LibraryFunction listed;
      listed.name = name;
      const auto text = [](const proto::OpDef::ArgDef& arg) {
        std::string type = arg.type_attr + arg.type_list_attr;
        if (type.empty()) {
          const auto dtype = dtype_of_number(arg.type);
          type = dtype ? dtype_name(*dtype) : dtype_number_name(arg.type);
        }
        return cat(arg.name, ": ", type);
      };
      for (const auto& arg : def.signature->input_arg) listed.args.push_back(text(arg));
      for (const auto& arg : def.signature->output_arg) listed.results.push_back(text(arg));
      for (const auto& node : def.node_def) listed.ops.push_back(node.op);
      result_.library.push_back(std::move(listed));
    }
  }

  void enter(const std::string& name) {
    if (std::find(running_.begin(), running_.end(), name) != running_.end()) {
      std::string path;
      for (auto f = std::find(running_.begin(), running_.end(), name); f != running_.end(); ++f)
        path += cat("'", *f, "' calls ");
      throw InvalidArgumentError(
          cat("Functions that call themselves cannot be run: ", path, "'", name, "'."));
    }
    if (running_.size() == kDeepestNesting) {
      throw InvalidArgumentError(
          cat("Function '", name, "' is called through more than ", kDeepestNesting, " others."));
    }
    running_.push_back(name);
  }

  FunctionRef import_body(proto::FunctionDef& def, const BodyImport::Bindings& attrs) {
    const std::string& name = def.signature->name;
    std::vector<BodyImport::Result> wanted;
    for (const auto& arg : def.signature->output_arg) {
      const auto ret = def.ret.find(arg.name);
      if (ret == def.ret.end()) {
        throw InvalidArgumentError(
            cat("Function '", name, "' does not say what its result '", arg.name, "' is."));
      }
      wanted.push_back({ret->second, dtype_of_number(arg.type).value_or(DType::kInvalid)});
    }
    BodyImport body(*this, def.node_def, &def, &attrs);
    Graph graph = body.run(wanted);
    std::vector<Node*> effects;
    for (const auto& [result, node_name] : def.control_ret) {
      Node* node = body.node(node_name);
      if (!node) {
        throw InvalidArgumentError(cat("Function '", name, "' must run its node '", node_name,
                                       "', which does not exist."));
      }
      if (std::find(effects.begin(), effects.end(), node) == effects.end()) effects.push_back(node);
    }
    std::sort(effects.begin(), effects.end(),
              [](const Node* a, const Node* b) { return a->id() < b->id(); });
    if (def.control_ret.empty()) {  // functions of before there were control results
      for (const auto& node : graph.nodes()) {
        const OpTraits& traits = node->op().traits;
        if (traits.stateful && !traits.reads_only && !traits.keeps_state)
          effects.push_back(node.get());
      }
    }
    return std::make_shared<const Function>(name, std::move(graph), body.args(), body.results(),
                                            std::move(effects));
  }

  proto::GraphDef& def_;
  const ImportOptions& options_;
  const LibraryOptions library_;
  std::map<std::string, ImportedGradient> gradients_;  // of calls, by the function called
  Runtime& runtime_;
  ImportedGraph result_;
  std::map<std::string, proto::FunctionDef*> functions_;
  std::map<std::string, FunctionRef> imported_;
  std::map<std::string, std::string> refused_;  // why, for each function that could not be read
  std::vector<std::string> problems_;           // the first ones
  std::size_t num_problems_ = 0;
  std::set<std::string> reported_;
  std::vector<std::string> running_;
  std::int64_t announced_ = 0;
};

}  // namespace

ImportedGraph import_message(proto::GraphDef& def, const ImportOptions& options) {
  return GraphImport(def, options).run();
}

struct FunctionLibrary::State {
  State(std::shared_ptr<proto::GraphDef> graph, LibraryOptions options)
      : def(std::move(graph)),
        import_options{.name = options.name},
        runtime(Runtime::current().share()),
        import(*def, import_options, options) {
    import.begin();
  }
  const std::shared_ptr<proto::GraphDef> def;
  const ImportOptions import_options;
  const std::shared_ptr<Runtime> runtime;
  std::mutex mutex;
  GraphImport import;  // guarded by mutex
};

FunctionLibrary::FunctionLibrary(std::shared_ptr<proto::GraphDef> def, LibraryOptions options)
    : state_(std::make_unique<State>(std::move(def), std::move(options))) {}
FunctionLibrary::~FunctionLibrary() = default;

const proto::FunctionDef* FunctionLibrary::find(const std::string& name) const {
  return state_->import.find(name);
}

FunctionRef FunctionLibrary::get(const std::string& name) {
  std::lock_guard lock(state_->mutex);
  return state_->import.function(name);
}

}  // namespace tandem::io
