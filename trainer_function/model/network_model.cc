// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/model/network_model.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <torch/script.h>
#include <zlib.h>

#include <cmath>
#include <cstring>
#include <sstream>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "trainer_function/model/network.h"
#include "trainer_function/model/networks/embedded_networks.h"
#include "trainer_function/model/torch_device.h"
#include "trainer_function/model/torch_model.h"
#include "trainer_function/model/torch_script_model.h"
#include "trainer_function/model/torch_support.h"

namespace lambdadnn {
namespace {

constexpr char kTable[] = "table.txt";  // in the archive

// A parameter or buffer and its first values.
struct Row {
  torch::jit::Module owner;
  std::string leaf;
  std::vector<int64_t> shape;
  std::string kind;
  double fan = 0;
  double deviation = 0;

  at::Tensor Tensor() const { return owner.attr(leaf).toTensor(); }

  // Drawn by the processor whatever the device: the same start everywhere.
  at::Tensor Draw(at::Generator& generator) const {
    const at::Tensor values = at::zeros(shape, at::kFloat);
    if (kind == "ones") return values.fill_(1);
    if (kind == "normal") {
      return values.normal_(0, fan > 0 ? std::sqrt(2 / fan) : deviation, generator);
    }
    if (kind == "uniform")
      return values.uniform_(-1 / std::sqrt(fan), 1 / std::sqrt(fan), generator);
    LDNN_CHECK(kind == "zeros", "a kind of first values that networks.py does not write: " + kind);
    return values;
  }
};

std::string Inflate(std::string_view packed) {
  LDNN_CHECK(packed.size() > 4, "no such network in the program");
  uint32_t size = 0;  // a gzip file ends with it
  std::memcpy(&size, packed.data() + packed.size() - sizeof(size), sizeof(size));
  std::string text(size, '\0');
  z_stream stream = {};
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(text.data());
  stream.avail_out = size;
  constexpr int kGzip = 16 + MAX_WBITS;
  LDNN_CHECK(inflateInit2(&stream, kGzip) == Z_OK, "zlib cannot start");
  const int ended = inflate(&stream, Z_FINISH);
  inflateEnd(&stream);
  LDNN_CHECK(ended == Z_STREAM_END, "the network in the program is damaged");
  return text;
}

// "64,channels,7,7"; "-" = none.
std::vector<int64_t> SizesOf(const std::string& text, const SizedNetwork& network) {
  std::vector<int64_t> sizes;
  std::istringstream words(text == "-" ? "" : text);
  for (std::string word; std::getline(words, word, ',');) {
    const auto named = network.sizes.find(word);
    sizes.push_back(named != network.sizes.end() ? named->second : std::stoll(word));
  }
  return sizes;
}

// Lines of networks.py: name, shape, kind, fan, deviation.
std::vector<Row> ReadTable(const std::string& table, const torch::jit::Module& module,
                           const SizedNetwork& network) {
  std::vector<Row> rows;
  std::istringstream lines(table);
  std::string name;
  std::string shape;
  std::string fan;
  std::string deviation;
  for (Row row; lines >> name >> shape >> row.kind >> fan >> deviation; row = {}) {
    row.owner = module;
    std::istringstream path(name);
    while (std::getline(path, row.leaf, '.') && !path.eof()) {
      row.owner = row.owner.attr(row.leaf).toModule();
    }
    row.shape = SizesOf(shape, network);
    const std::vector<int64_t> factors = SizesOf(fan, network);
    row.fan = factors.empty() ? 0 : 1;
    for (const int64_t factor : factors) row.fan *= static_cast<double>(factor);
    row.deviation = deviation == "-" ? 0 : std::stod(deviation);
    rows.push_back(std::move(row));
  }
  LDNN_CHECK(!rows.empty(), "a network without a table");
  return rows;
}

// What the code reads from its modules instead of from the shapes of weights.
void SetOptions(const torch::jit::Module& module, const SizedNetwork& network) {
  for (torch::jit::Module part : module.modules()) {
    if (part.hasattr("first_stride")) part.setattr("first_stride", network.first_stride);
    if (part.hasattr("first_pool")) part.setattr("first_pool", network.first_pool);
    if (part.hasattr("dropout")) part.setattr("dropout", network.dropout);
  }
}

Result<std::unique_ptr<TrainableModel>> MakeNetworkModel(const SizedNetwork& network, int threads,
                                                         ComputeDevice device) {
  LDNN_RETURN_IF_ERROR(PrepareDevice(device, network.precision));
  try {
    ConfigureTorch(threads);
    std::istringstream archive(Inflate(EmbeddedNetwork(network.file)));
    torch::jit::ExtraFilesMap files = {{kTable, ""}};
    const torch::jit::Module module = torch::jit::load(archive, TorchDevice(device), files);
    std::vector<Row> rows = ReadTable(files.at(kTable), module, network);
    at::Generator unused = at::make_generator<at::CPUGeneratorImpl>(0);
    for (const Row& row : rows) {
      row.Tensor().set_data(row.Draw(unused).to(TorchDevice(device)));
    }
    SetOptions(module, network);
    return MakeScriptModel(
        module, network, network.input_shape, device, [rows = std::move(rows)](uint64_t seed) {
          at::NoGradGuard no_grad;
          at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
          for (const Row& row : rows) row.Tensor().copy_(row.Draw(generator));
        });
  } catch (const std::exception& error) {
    return InternalError("LibTorch failed to make the model: " + TorchErrorText(error));
  }
}

}  // namespace

Result<std::unique_ptr<TrainableModel>> MakeBuiltinModel(const TrainingConfig& config,
                                                         const DatasetInfo& dataset, int threads,
                                                         ComputeDevice device) {
  if (!IsNetwork(config.model.name)) return MakeTorchModel(config, dataset, threads, device);
  if (threads < 1) return InvalidArgumentError("a model needs at least 1 thread");
  LDNN_ASSIGN_OR_RETURN(SizedNetwork network, BuildNetwork(config.model, dataset, config.loss));
  LDNN_RETURN_IF_ERROR(SetLossOptions(config, &network));
  return MakeNetworkModel(network, threads, device);
}

}  // namespace lambdadnn
