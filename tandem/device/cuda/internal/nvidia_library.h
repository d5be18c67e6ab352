#pragma once

#include <string>
#include <vector>

namespace tandem::cuda {

/// One of NVIDIA's libraries, which Tandem neither links nor includes: it is opened at run time
/// where it is found, and stays open until the process ends. What is missing disables what needs
/// it, and `report` says so. Not changed after it has been set up, and then read by any thread.
///
///     NvidiaLibrary library({.name = "cuBLASLt", .file = "libcublasLt.so.",
///                            .majors = toolkit_majors(), .without = "own kernels multiply
///                            matrices"});
///     library.find("cublasLtCreate", create_);
///     if (library.usable()) library.set_version("13.0.2");
class NvidiaLibrary {
 public:
  struct Description {
    const char* name;         ///< as people know it; also its name in TANDEM_CUDA_LIBRARIES
    const char* file;         ///< "libcublasLt.so.", which a major version follows
    std::vector<int> majors;  ///< that Tandem knows, the best one first
    const char* without;      ///< what is done where it is missing
  };

  /// Opens the first file there is of the majors in turn. Never throws.
  explicit NvidiaLibrary(Description description);
  /// In these folders alone, an empty one standing for the system's loader.
  NvidiaLibrary(Description description, const std::vector<std::string>& folders);

  /// Looks up a function; null if there is none, and the library is then not usable.
  template <class Function>
  void find(const char* symbol, Function& function) {
    function = reinterpret_cast<Function>(address_of(symbol));
  }

  /// False if it was not found, lacks a function or has been disabled.
  bool usable() const { return problem_.empty(); }
  int major() const { return major_; }
  const std::string& path() const { return path_; }
  /// As `report` shows it.
  void set_version(const std::string& version) { version_ = version; }
  /// `why` continues "cuBLASLt is not used: ". The first reason stays.
  void disable(const std::string& why);

  /// "cuBLASLt 13.0.2 (/usr/local/cuda/lib64/libcublasLt.so.13)", or why it is not used and what is
  /// done without it.
  std::string report() const;

 private:
  void* address_of(const char* symbol);
  bool open(const std::string& folder, int major);
  std::string absence(const std::vector<std::string>& folders) const;

  const Description description_;
  void* handle_ = nullptr;
  int major_ = 0;
  std::string path_, version_, problem_;
};

/// Where NVIDIA's libraries are looked for, in this order: CUDA_HOME and CUDA_PATH, the system's
/// loader (""), /usr/local/cuda, NVIDIA's packages of Python (of VIRTUAL_ENV, CONDA_PREFIX,
/// PYTHONPATH, the user and the system).
std::vector<std::string> library_folders();

/// Whether the environment variable TANDEM_CUDA_LIBRARIES lets a library be used: it lists names
/// with commas between them, or is "none"; without it all are used.
bool is_library_allowed(const std::string& name);

}  // namespace tandem::cuda
