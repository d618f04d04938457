"""One-line calls of libraries for the rows of third-party tables."""

from __future__ import annotations

from typing import NamedTuple

from page_examples import Example

TORCH, NUMPY, PYTHON = "torch.rand(3)", "numpy.random.rand(3)", "random.random()"


class Line(NamedTuple):
    """A call, and the codes that are reported of a program that makes it: which one, says ``of``.

    ``seeds`` calls it after each generator was drawn from: TRL101 to TRL103 for what it leaves out, TRL104 for what it
    seeds. ``draws`` calls it and saves the result. ``device`` calls it beside an operation that CUDA alone makes
    nondeterministic, ``matters`` after a draw that comes to nothing, ``restores`` in a program
    that restores an optimizer and trains. ``alone`` only calls it.
    """

    of: str
    call: str
    codes: str
    torch: str = "2.13"

    @property
    def text(self) -> str:
        modules = {"numpy", "random", "time", "torch", *_modules(self.call)}
        lines = [f"import {module}" for module in sorted(modules)]
        return "\n".join((*lines, "", "", *_body(self), ""))

    def example(self, number: int) -> Example:
        return Example("table_lines.py", number, {"example.py": self.text}, (), (), {"torch": self.torch})


def _modules(call: str) -> list[str]:
    """The module of each dotted name that begins with what is not a variable: ``a.b`` of ``a.b.f(x)``."""
    found = []
    for name in (call, *call.split("(")[1:]):
        words = name.split("(")[0].split(".")
        lower = [word for word in words[:-1] if word[:1].islower() or word[:1] == "_"]
        if len(lower) == len(words[:-1]) or (lower and words[len(lower)][:1].isupper()):
            found.append(".".join(lower))
    return [
        module for module in found if module and module.isascii() and module.replace(".", "").replace("_", "").isalnum()
    ]


def _body(line: Line) -> list[str]:
    if line.of == "seeds":
        drawn = [f"torch.save({TORCH}, 'a')", f"torch.save({NUMPY}, 'b')", f"torch.save({PYTHON}, 'c')"]
        return ["def main(x=None):", *(f"    {each}" for each in (*drawn, line.call)), "", "", "main()"]
    beside = {"device": "torch.nn.AdaptiveAvgPool2d(7)", "matters": TORCH, "alone": ""}
    if line.of in beside:
        return [
            "def main(x, y):",
            *(f"    {each}" for each in (beside[line.of], line.call) if each),
            "",
            "",
            "main(*input())",
        ]
    if line.of == "restores":
        resumed = ["torch.manual_seed(7)", "optimizer.load_state_dict(torch.load('a'))", line.call, "y.backward()"]
        return ["def main(x, y, optimizer):", *(f"    {each}" for each in resumed), "", "", "main(*input())"]
    if line.of == "draws":
        return ["def main(x, y):", f"    torch.save({line.call}, 'a')", "", "", "main(*input())"]
    raise ValueError(line.of)


ALL = "104 104 104"
SEEDERS = (
    Line("seeds", "torch.manual_seed(7)", "102 103 104"),
    Line("seeds", "torch.random.seed()", "101 102 103 105"),
    Line("seeds", "torch.cuda.manual_seed_all(7)", "101 102 103"),
    Line("seeds", "torch.cuda.seed_all()", "101 102 103 105"),
    Line("seeds", "numpy.random.seed(7)", "101 103 104"),
    Line("seeds", "numpy.random.seed()", "101 102 103 105"),
    Line("seeds", "numpy.random.set_state(x)", "101 103 104"),
    Line("seeds", "random.seed(7)", "101 102 104"),
    Line("seeds", "random.seed(a=None)", "101 102 103 105"),
    Line("seeds", "random.setstate(x)", "101 102 104"),
    Line("seeds", "lightning.seed_everything(7)", ALL),
    Line("seeds", "lightning.fabric.seed_everything()", ALL),
    Line("seeds", "lightning.fabric.Fabric.seed_everything(7)", ALL),
    Line("seeds", "lightning.Fabric().seed_everything(7)", ALL),
    Line("seeds", "transformers.set_seed(7)", ALL),
    Line("seeds", "transformers.set_seed(int(time.time()))", "101 102 103 105"),
    Line("seeds", "transformers.trainer_utils.enable_full_determinism(7)", ALL),
    Line("seeds", "accelerate.utils.set_seed(7)", ALL),
    Line("seeds", "diffusers.training_utils.set_seed(7)", ALL),
    Line("seeds", "diffusers.utils.torch_utils.enable_full_determinism()", "101 102 103"),
    Line("seeds", "diffusers.utils.torch_utils.disable_full_determinism()", "101 102 103"),
    Line("seeds", "torch_geometric.seed_everything(7)", ALL),
    Line("seeds", "monai.utils.set_determinism()", ALL),
    Line("seeds", "monai.utils.set_determinism(None)", "101 102 103 105"),
    Line("seeds", "monai.utils.set_determinism(seed=None)", "101 102 103 105"),
    Line("seeds", "mmengine.runner.set_random_seed(7)", ALL),
    Line("seeds", "mmengine.runner.set_random_seed()", "101 102 103 105"),
    Line("seeds", "mmdet.apis.set_random_seed(7)", ALL),
    Line("seeds", "detectron2.utils.env.seed_all_rng(7)", ALL),
    Line("seeds", "detectron2.utils.env.seed_all_rng()", "101 102 103 105"),
    Line("seeds", "ignite.utils.manual_seed(7)", ALL),
    Line("seeds", "fastai.torch_core.set_seed(s=7)", ALL),
    Line("seeds", "fastai.torch_core.set_seed(s=time.time_ns())", "101 102 103 105"),
    Line("seeds", "composer.utils.reproducibility.seed_all(7)", ALL),
    Line("seeds", "composer.utils.reproducibility.configure_deterministic_mode()", "101 102 103"),
    Line("seeds", "timm.utils.random_seed()", ALL),
    Line("seeds", "stable_baselines3.common.utils.set_random_seed(7)", ALL),
    Line("seeds", "ultralytics.utils.torch_utils.init_seeds()", ALL),
    Line("seeds", "yolov5.utils.general.init_seeds(7)", ALL),
    Line("seeds", "allennlp.common.util.prepare_environment(x)", ALL),
    Line("seeds", "catalyst.utils.set_global_seed(7)", ALL),
    Line("seeds", "dgl.seed(time.time_ns())", "101 102 103 105"),
    Line("seeds", "dgl.seed(7)", "101 102 103"),
    Line("seeds", "imgaug.seed(time.time_ns())", "101 102 103 105"),
    Line("seeds", "keras.utils.set_random_seed(7)", ALL),
    Line("seeds", "torchtune.training.set_seed(7)", ALL),
    Line("seeds", "torchtune.training.set_seed()", "101 102 103 105"),
    Line("seeds", "torchtitan.distributed.utils.set_determinism(x, x, x, x)", "102 103 104"),
    Line("seeds", "ray.rllib.utils.debug.update_global_seed_if_necessary('torch', 7)", ALL),
    Line("seeds", "ray.rllib.utils.debug.update_global_seed_if_necessary('torch', None)", "101 102 103"),
    Line("seeds", "flair.set_seed(7)", ALL),
    Line("seeds", "skrl.utils.set_seed(7)", ALL),
    Line("seeds", "skrl.utils.set_seed()", "101 102 103 105"),
    Line("seeds", "pyro.set_rng_seed(7)", ALL),
    Line("seeds", "speechbrain.utils.seed.seed_everything()", ALL),
    Line("seeds", "espnet2.torch_utils.set_all_random_seed.set_all_random_seed(7)", ALL),
    Line("seeds", "deepspeed.runtime.utils.set_random_seed(7)", ALL),
    Line("seeds", "fwr13y.seeder.pyt.Seeder().reseed(x, x)", ALL),
)
FRAMEWORKS = (
    Line("seeds", "lightning.pytorch.cli.LightningCLI()", ALL),
    Line("seeds", "lightning.pytorch.cli.LightningCLI(seed_everything_default=False)", "101 102 103"),
    Line("seeds", "transformers.Trainer(x, x)", ALL),
    Line("seeds", "trl.SFTTrainer(x)", ALL),
    Line("seeds", "trl.ORPOTrainer(x)", ALL),
    Line("seeds", "transformers.TrainingArguments(x, seed=7)", "101 102 103"),
    Line("seeds", "transformers.TrainingArguments(x, seed=time.time_ns())", "101 102 103 105"),
    Line("seeds", "stable_baselines3.PPO(x, x, seed=7)", ALL),
    Line("seeds", "stable_baselines3.PPO(x, x)", "101 102 103"),
    Line("seeds", "setfit.Trainer(x)", ALL),
    Line("seeds", "ignite.engine.deterministic.DeterministicEngine(x).run(x)", ALL),
    Line("seeds", "fastai.vision.all.RandomSplitter(0.2, seed=7)", "102 103 104"),
    Line("seeds", "fastai.vision.all.RandomSplitter(0.2)", "101 102 103"),
    Line("seeds", "fastai.vision.all.ImageDataLoaders.from_name_func(x, x, x, seed=7)", "102 103 104"),
    Line("seeds", "detectron2.engine.default_setup(x, x)", ALL),
    Line("seeds", "mmengine.runner.Runner(x, x, randomness=dict(seed=7))", ALL),
    Line("seeds", "mmengine.runner.Runner(x, x)", "101 102 103 105"),
    Line("seeds", "mmengine.runner.Runner.from_cfg(x)", ALL),
    Line("seeds", "composer.Trainer(model=x, seed=7)", ALL),
    Line("seeds", "composer.Trainer(model=x)", "101 102 103 105"),
    Line("seeds", "ultralytics.YOLO(x).train(data=x)", ALL),
    Line("seeds", "ultralytics.YOLO(x).train(data=x, seed=time.time_ns())", "101 102 103 105"),
    Line("seeds", "tianshou.highlevel.experiment.DQNExperimentBuilder(x).build_and_run()", "103 104 104"),
    Line("seeds", "pytorch_tabnet.tab_model.TabNetClassifier()", "102 103 104"),
)
DEVICES = (
    Line("device", "lightning.Trainer()", "402"),
    Line("device", "lightning.Trainer(accelerator='cpu')", ""),
    Line("device", "lightning.Fabric()", "402"),
    Line("device", "lightning.fabric.Fabric('cpu')", ""),
    Line("device", "transformers.TrainingArguments(x)", "402"),
    Line("device", "transformers.TrainingArguments(x, use_cpu=True)", ""),
    Line("device", "accelerate.Accelerator()", "402"),
    Line("device", "accelerate.Accelerator(cpu=True)", ""),
    Line("device", "transformers.pipeline(x)", "402"),
    Line("device", "transformers.pipeline(x, device='cpu')", ""),
    Line("device", "transformers.pipeline(x, device=-1)", ""),
    Line("device", "sentence_transformers.SentenceTransformer(x)", "402"),
    Line("device", "sentence_transformers.SentenceTransformer(x, device='cpu')", ""),
    Line("device", "torch.accelerator.current_accelerator()", "402"),
    Line("device", "deepspeed.initialize(model=x)", "402"),
    Line("device", "ignite.distributed.auto_model(x)", "402"),
    Line("device", "fastai.vision.all.vision_learner(x, y)", "402"),
    Line("device", "fastai.vision.all.Learner(x, y)", "402"),
    Line("device", "detectron2.engine.DefaultTrainer(x)", "402"),
    Line("device", "composer.Trainer(model=x, seed=7)", "402"),
    Line("device", "composer.Trainer(model=x, seed=7, device='cpu')", ""),
    Line("device", "ultralytics.YOLO(x)", "402"),
    Line("device", "skorch.NeuralNet(x, device='cuda')", "402"),
    Line("device", "skorch.NeuralNet(x)", ""),
    Line("device", "pytorch_tabnet.tab_model.TabNetRegressor()", "402"),
    Line("device", "pytorch_tabnet.tab_model.TabNetRegressor(device_name='cpu')", ""),
    Line("device", "stable_baselines3.PPO(x, y)", "402"),
    Line("device", "stable_baselines3.PPO(x, y, device='cpu')", ""),
)
RESTORING = (
    Line("restores", "accelerate.Accelerator().state", "112"),
    Line("restores", "accelerate.Accelerator().load_state(x)", ""),
    Line("restores", "lightning.Trainer().fit(x)", ""),
    Line("restores", "transformers.Trainer(x).train()", ""),
)
TRAINING = (
    Line("matters", "lightning.Trainer().fit(x)", "101"),
    Line("matters", "lightning.Trainer.from_argparse_args(x).fit(x)", "101"),
    Line("matters", "trl.KTOTrainer(x).train()", "104"),
    Line("matters", "lightning.Trainer().validate(x)", "101"),
    Line("matters", "pytorch_lightning.trainer.trainer.Trainer().test(x)", "101"),
    Line("matters", "transformers.Trainer(x).train()", "104"),
    Line("matters", "transformers.Trainer(x).training_step(x, x)", "104"),
    Line("matters", "transformers.Trainer(x).evaluate()", "104"),
    Line("matters", "stable_baselines3.PPO(x, y, seed=7).learn(7)", "104"),
    Line("matters", "sentence_transformers.SentenceTransformer(x).fit(y)", "101"),
    Line("matters", "setfit.Trainer(x).train()", "104"),
    Line("matters", "ignite.engine.Engine(x).run(y)", "101"),
    Line("matters", "ignite.engine.create_supervised_trainer(x, y, y).run(y)", "101"),
    Line("matters", "fastai.vision.all.Learner(x, y).fit_one_cycle(7)", "101"),
    Line("matters", "fastai.vision.all.vision_learner(x, y).fine_tune(7)", "101"),
    Line("matters", "detectron2.engine.DefaultTrainer(x).train()", "101"),
    Line("matters", "mmengine.runner.Runner.from_cfg(x).train()", "104"),
    Line("matters", "composer.Trainer(model=x, seed=7).fit()", "104"),
    Line("matters", "monai.engines.SupervisedTrainer(x).run()", "101"),
    Line("matters", "ultralytics.YOLO(x).val()", "101"),
    Line("matters", "ray.train.torch.TorchTrainer(x)", "101"),
    Line("matters", "keras.Sequential(x).fit(y)", "101"),
    Line("matters", "skorch.NeuralNet(x).fit(y)", "101"),
    Line("matters", "flair.trainers.ModelTrainer(x, y).train(y)", "101"),
    Line("matters", "pytorch_tabnet.tab_model.TabNetRegressor().fit(x, y)", "104"),
)
CONSUMERS = (
    Line("draws", "torch.binomial(x, y)", "101"),
    Line("draws", "torch.binomial(x, y, generator=torch.Generator())", ""),
    Line("draws", "torch.nn.functional.dropout(x)", "101"),
    Line("draws", "torch.nn.functional.dropout(x, 0.0)", ""),
    Line("draws", "torch.nn.functional.alpha_dropout(x, training=True)", "101"),
    Line("draws", "torch.nn.functional.alpha_dropout(x)", ""),
    Line("draws", "torch.dropout(x, 0.5, True)", "101"),
    Line("draws", "torch.dropout(x, 0.5, False)", ""),
    Line("draws", "torch.native_dropout(x, 0.5, True)", "101"),
    Line("draws", "torch.native_dropout(x, 0.0, True)", ""),
    Line("draws", "torch.nn.Dropout()(x)", "101"),
    Line("draws", "torch.nn.Dropout(0.0)(x)", ""),
    Line("draws", "torch.nn.functional.rrelu(x, training=True)", "101"),
    Line("draws", "torch.nn.functional.rrelu(x)", ""),
    Line("draws", "torch.rrelu(x, training=True)", "101"),
    Line("draws", "torch.nn.RReLU()(x)", "101"),
    Line("draws", "torch.nn.functional.scaled_dot_product_attention(x, x, x, dropout_p=0.1)", "101"),
    Line("draws", "torch.nn.functional.scaled_dot_product_attention(x, x, x)", ""),
    Line("draws", "torch.lstm(x, x, x, True, 2, 0.5, True, True, True)", "101"),
    Line("draws", "torch.nn.functional.gumbel_softmax(x)", "101"),
    Line("draws", "torch.nn.functional.fractional_max_pool2d(x, 2, 3)", "101"),
    Line("draws", "torch.nn.FractionalMaxPool2d(2, 3)(x)", "101"),
    Line("draws", "torch.quasirandom.SobolEngine(3, True)", "101"),
    Line("draws", "torch.quasirandom.SobolEngine(3, True, 7)", ""),
    Line("draws", "torch.distributions.Normal(0, 1).sample()", "101"),
    Line("draws", "torch.nn.Bilinear(1, 1, 1)", "101"),
    Line("draws", "torch.nn.LazyLinear(1)(x)", "101"),
    Line("draws", "torch.nn.LazyLinear(1)", ""),
    Line("draws", "torch.nn.init.uniform_(x)", "101"),
    Line("draws", "torch.nn.init.normal_(x)", "101"),
    Line("draws", "torch.nn.init.trunc_normal_(x)", "101"),
    Line("draws", "torch.nn.init.trunc_normal_(x, generator=y)", ""),
    Line("draws", "torch.nn.init.orthogonal_(x)", "101"),
    Line("draws", "torch.nn.init.kaiming_uniform_(x)", "101"),
    Line("draws", "torch.nn.init.sparse_(x, 0.1)", "101"),
    Line("draws", "torch.nn.init.uniform(x)", "101"),
    Line("draws", "torch.utils.data.random_split(x, y)", "101"),
    Line("draws", "list(torch.utils.data.RandomSampler(x))", "101"),
    Line("draws", "list(torch.utils.data.WeightedRandomSampler(x, 3))", "101"),
    Line("draws", "list(torch.utils.data.SubsetRandomSampler(x))", "101"),
    Line("draws", "list(torch.utils.data.SubsetRandomSampler(x, y))", ""),
    Line("draws", "numpy.random.beta(1, 1)", "102"),
    Line("draws", "stable_baselines3.common.env_util.make_vec_env(x)", "102"),
    Line("draws", "stable_baselines3.common.env_util.make_vec_env(x, seed=7)", ""),
    Line("draws", "stable_baselines3.common.vec_env.DummyVecEnv(x).seed()", "102"),
    Line("draws", "detectron2.engine.DefaultTrainer(x)", "101"),
    Line("draws", "random.betavariate(1, 1)", "103"),
    Line("draws", "sklearn.utils.shuffle(x)", "102"),
    Line("draws", "sklearn.utils.shuffle(x, random_state=7)", ""),
    Line("draws", "scipy.stats.norm.rvs(size=3)", "102"),
    Line("draws", "scipy.stats.norm.rvs(size=3, random_state=7)", ""),
)
LIBRARIES = (
    Line("draws", "torchvision.models.resnet18()", "101"),
    Line("draws", "timm.create_model('resnet18')", "101"),
    Line("draws", "transformers.BertModel(x)", "101"),
    Line("draws", "transformers.BertForMaskedLM(x)", "101"),
    Line("draws", "transformers.DataCollatorForLanguageModeling(x)", ""),
    Line("draws", "transformers.AutoModelForSequenceClassification.from_pretrained(x, num_labels=7)", "101"),
    Line("draws", "transformers.AutoModelForSequenceClassification.from_pretrained(x)", ""),
    Line("draws", "transformers.ViTForImageClassification.from_pretrained(x, ignore_mismatched_sizes=True)", "101"),
    Line("draws", "peft.get_peft_model(x, y)", "101"),
    Line("draws", "peft.get_peft_model(x, peft.LoraConfig())", "101"),
    Line("draws", "peft.get_peft_model(x, peft.IA3Config())", ""),
    Line("draws", "transformers.ViTForImageClassification.from_pretrained(x, **y)", ""),
    Line("draws", "diffusers.DiffusionPipeline.from_pretrained(x)(y)", "101"),
    Line("draws", "diffusers.DiffusionPipeline.from_pretrained(x)(y, generator=x)", ""),
    Line("draws", "diffusers.DiffusionPipeline.from_pretrained(x)", ""),
    Line("draws", "torch.hub.load(x, y, pretrained=False)", "101"),
    Line("draws", "torch.hub.load(x, y)", ""),
    Line("draws", "torch_geometric.nn.GCNConv(1, 1)", "101"),
    Line("draws", "torch_geometric.nn.LGConv()", ""),
    Line("draws", "diffusers.UNet2DModel()", "101"),
    Line("draws", "diffusers.training_utils.EMAModel(x)", ""),
    Line("draws", "torchvision.transforms.RandomCrop(7)(x)", "101"),
    Line("draws", "torchvision.transforms.RandomCrop(7)", ""),
    Line("draws", "torch_geometric.utils.dropout_edge(x)", "101"),
    Line("draws", "list(torch.utils.data.DataLoader(x, shuffle=True))", "101"),
    Line("draws", "sklearn.model_selection.train_test_split(x)", "102"),
    Line("draws", "sklearn.model_selection.train_test_split(x, shuffle=False)", ""),
    Line("draws", "sklearn.cluster.k_means(x, 3)", "102"),
    Line("draws", "sklearn.model_selection.KFold(5, shuffle=True).split(x)", "102"),
    Line("draws", "sklearn.model_selection.KFold(5).split(x)", ""),
    Line("draws", "sklearn.cluster.KMeans(3).fit(x)", "102"),
    Line("draws", "sklearn.cluster.KMeans(3, random_state=7).fit(x)", ""),
    Line("draws", "sklearn.linear_model.SGDClassifier().fit(x, y)", "102"),
    Line("draws", "sklearn.linear_model.SGDClassifier(shuffle=False).fit(x, y)", ""),
    Line("draws", "sklearn.linear_model.LogisticRegression(solver='saga').fit(x, y)", "102"),
    Line("draws", "sklearn.linear_model.LogisticRegression().fit(x, y)", ""),
    Line("draws", "sklearn.decomposition.PCA(svd_solver='randomized').fit(x)", "102"),
    Line("draws", "sklearn.decomposition.PCA().fit(x)", ""),
    Line("draws", "imblearn.over_sampling.SMOTE().fit_resample(x, y)", "102"),
    Line("draws", "scipy.optimize.differential_evolution(x, y)", "102"),
    Line("draws", "scipy.optimize.differential_evolution(x, y, seed=7)", ""),
    Line("draws", "scipy.optimize.differential_evolution(x, y, rng=7)", ""),
    Line("draws", "datasets.load_dataset(x).shuffle()", "102"),
    Line("draws", "datasets.load_dataset(x)['train'].train_test_split(0.1)", "102"),
    Line("draws", "datasets.load_dataset(x).shuffle(seed=7)", ""),
    Line("draws", "datasets.load_dataset(x).shuffle(seed=y)", ""),
    Line("draws", "datasets.load_dataset(x).shuffle(seed=None)", "102"),
    Line("draws", "datasets.load_dataset(x).map(y)['train'].shuffle(**y)", ""),
    Line("draws", "timm.data.Mixup()(x, y)", "102"),
    Line("draws", "pandas.DataFrame(x).sample(3)", "102"),
    Line("draws", "torch_geometric.utils.negative_sampling(x)", "103"),
    Line("draws", "torchvision.transforms.RandomOrder(x)(y)", "103"),
    Line("draws", "networkx.erdos_renyi_graph(7, 0.5)", "103"),
    Line("draws", "networkx.erdos_renyi_graph(7, 0.5, seed=7)", ""),
)
THIRD_PARTY = (
    Line("alone", "torch_scatter.scatter_mul(x.cuda(), y)", "405"),
    Line("alone", "torch_scatter.scatter_min(x.cuda(), y)", "405"),
    Line("alone", "torch_scatter.scatter(x.cuda(), y, reduce='max')", "405"),
    Line("alone", "torch_scatter.scatter(x.cuda(), y, reduce='sum')", ""),
    Line("alone", "torch_scatter.segment_coo(x.cuda(), y)", "405"),
    Line("alone", "torch_scatter.gather_coo(x.cuda(), y)", "405"),
    Line("alone", "torch_geometric.utils.scatter(x.cuda(), y, reduce='mul')", "405"),
    Line("alone", "torch_geometric.utils.scatter(x.cuda(), y, reduce='max')", "405"),
    Line("alone", "flash_attn.flash_attn_func(x.cuda(), x, x)", "405"),
    Line("alone", "flash_attn.flash_attn_qkvpacked_func(x.cuda())", "405"),
    Line("alone", "flash_attn.flash_attn_kvpacked_func(x.cuda(), y)", "405"),
    Line("alone", "flash_attn.flash_attn_varlen_func(x.cuda(), x, x, y, y, 3, 3)", "405"),
    Line("alone", "flash_attn.modules.mha.FlashSelfAttention().cuda()(x)", "405"),
    Line("alone", "flash_attn.flash_attn_varlen_qkvpacked_func(x, y, 3).cuda()", "405"),
    Line("alone", "flash_attn.flash_attn_varlen_kvpacked_func(x, x, y, y, 3, 3).cuda()", "405"),
    Line("alone", "flash_attn_interface.flash_attn_func(x, x, x).cuda()", "405"),
    Line("alone", "flash_attn_interface.flash_attn_func(x, x, x, deterministic=True).cuda()", ""),
    Line("alone", "dgl.ops.gather_mm(x, y, idx_b=x).cuda()", "405"),
    Line("alone", "apex.contrib.focal_loss.focal_loss(x.cuda(), y)", "405"),
    Line("alone", "apex.contrib.group_norm.GroupNorm(1, 1).cuda()", "405"),
    Line("alone", "apex.contrib.groupbn.BatchNorm2d_NHWC(1).cuda()", "405"),
    Line("alone", "apex.mlp.MLP([1, 2]).cuda()", "405"),
)
LINES = (*SEEDERS, *FRAMEWORKS, *DEVICES, *RESTORING, *TRAINING, *CONSUMERS, *LIBRARIES, *THIRD_PARTY)
