//! cassandra-stress: what it draws, against figures that the original printed at fixed seeds.
//!
//! The figures come from the original's classes on OpenJDK 17 with Apache Commons Math 3.2: folds
//! (`31 * fold + value` in 64 bits) over many draws, so that a single wrong bit shows, and the
//! first draws of one seed, so that a wrong one can be read.

// Clippy's exception for tests does not reach the functions that they share.
#![allow(clippy::unwrap_used)]

use workload::cassandra_stress::{
    BlobGenerator, ColumnGenerator, ColumnSpec, ColumnType, Distribution, DrawState, JavaRandom,
    KeyGenerator, ScalarType, Xorshift, column_names, fold_bytes, salt,
};

fn fold(values: impl Iterator<Item = i64>) -> i64 {
    values.fold(0, |fold: i64, value| fold.wrapping_mul(31).wrapping_add(value))
}

fn bits(value: f64) -> i64 {
    value.to_bits().cast_signed()
}

/// What the original draws from one specification.
struct Original {
    spec: &'static str,
    /// 25000 whole numbers of each of the seeds 0, 12345, 24690, 37035.
    fold: i64,
    /// Bits of 20000 real numbers of seed 7; none for EXTREME, whose last bit is the platform's.
    fold_f64: Option<i64>,
    /// The first of seed 99.
    first: [i64; 6],
    average: i64,
    /// Three tenths of the draws are at or below it.
    quantile: i64,
}

const ORIGINALS: [Original; 18] = [
    Original {
        spec: "fixed(7)",
        fold: -3_822_735_346_829_908_480,
        fold_f64: Some(-5_188_146_770_730_811_392),
        first: [7, 7, 7, 7, 7, 7],
        average: 7,
        quantile: 7,
    },
    Original {
        spec: "uniform(1..100b)",
        fold: -7_820_718_241_038_550_612,
        fold_f64: Some(-3_878_264_533_367_135_056),
        first: [
            72_245_754_882,
            34_725_406_335,
            81_567_247_796,
            86_704_067_281,
            76_755_449_260,
            25_860_307_737,
        ],
        average: 49_999_994_975,
        quantile: 30_000_000_001,
    },
    Original {
        spec: "uniform(-5..5)",
        fold: -1_952_333_905_139_574_339,
        fold_f64: Some(-2_083_542_319_063_212_372),
        first: [2, -1, 3, 4, 3, -2],
        average: 0,
        quantile: -1,
    },
    Original {
        spec: "gaussian(1..10M)",
        fold: 4_360_671_677_620_198_541,
        fold_f64: Some(7_973_469_658_594_498_303),
        first: [7_158_027, 3_518_234, 5_390_537, 5_454_087, 6_416_345, 3_722_124],
        average: 4_999_999,
        quantile: 4_125_999,
    },
    Original {
        spec: "gaussian(1..1000,5)",
        fold: -4_954_428_362_603_792_481,
        fold_f64: Some(3_533_491_964_548_775_867),
        first: [629, 411, 523, 527, 585, 423],
        average: 499,
        quantile: 448,
    },
    Original {
        spec: "gaussian(1..9M,4500000,10000)",
        fold: -1_708_805_860_222_080_724,
        fold_f64: Some(2_856_421_096_116_393_590),
        first: [4_512_948, 4_491_109, 4_502_343, 4_502_724, 4_508_498, 4_492_332],
        average: 4_412_736,
        quantile: 4_494_755,
    },
    Original {
        spec: "gauss(10..20,15,30)",
        fold: -4_615_982_092_650_207_840,
        fold_f64: Some(4_231_231_686_207_546_602),
        first: [20, 10, 20, 20, 20, 10],
        average: 14,
        quantile: 10,
    },
    Original {
        spec: "exp(1..1M)",
        fold: -7_891_210_191_378_138_290,
        fold_f64: Some(4_310_460_352_581_871_023),
        first: [64_408, 156_660, 91_397, 25_950, 154_876, 61_412],
        average: 153_369,
        quantile: 51_634,
    },
    Original {
        spec: "exp(5..15)",
        fold: 1_938_388_341_280_111_617,
        fold_f64: Some(5_762_876_542_365_975_791),
        first: [8, 14, 10, 6, 14, 8],
        average: 10,
        quantile: 8,
    },
    Original {
        spec: "~exp(1..1000)",
        fold: -5_737_761_460_788_011_060,
        fold_f64: Some(-5_840_669_224_169_208_660),
        first: [872, 687, 818, 949, 691, 878],
        average: 716,
        quantile: 897,
    },
    Original {
        spec: "extreme(1..1M,2)",
        fold: 1_100_865_433_508_298_601,
        fold_f64: None,
        first: [430_763, 248_500, 494_776, 540_457, 459_594, 208_126],
        average: 341_039,
        quantile: 227_231,
    },
    Original {
        spec: "extr(0..1000,0.7)",
        fold: -4_346_795_952_109_958_372,
        fold_f64: None,
        first: [242, 50, 360, 463, 292, 30],
        average: 206,
        quantile: 39,
    },
    Original {
        spec: "extreme(1..2,3)",
        fold: -3_727_459_252_481_338_368,
        fold_f64: None,
        first: [2, 2, 2, 2, 2, 2],
        average: 1,
        quantile: 2,
    },
    Original {
        spec: "~extreme(1..100,1.5)",
        fold: 8_667_453_506_706_904_432,
        fold_f64: None,
        first: [33, 68, 20, 10, 27, 75],
        average: 51,
        quantile: 72,
    },
    Original {
        spec: "seq(1..10)",
        fold: 4_834_125_692_234_489_600,
        fold_f64: Some(-1_558_245_471_070_191_616),
        first: [10, 1, 2, 3, 4, 5],
        average: 5,
        quantile: 3,
    },
    Original {
        spec: "~gaussian(1..50)",
        fold: 5_672_283_212_194_791_697,
        fold_f64: Some(7_922_859_507_957_969_181),
        first: [15, 33, 24, 24, 19, 32],
        average: 25,
        quantile: 30,
    },
    Original {
        spec: "uniform(1..1576800000000)",
        fold: 2_856_048_071_620_577_528,
        fold_f64: Some(626_679_661_394_400_906),
        first: [
            1_139_171_062_979,
            547_550_207_080,
            1_286_152_363_240,
            1_367_149_732_880,
            1_210_279_923_921,
            407_765_332_392,
        ],
        average: 788_399_920_758,
        quantile: 473_040_000_001,
    },
    Original {
        spec: "exp(1..3)",
        fold: 2_592_869_953_030_063_151,
        fold_f64: Some(-9_159_465_911_554_072_442),
        first: [3, 3, 3, 2, 3, 3],
        average: 2,
        quantile: 3,
    },
];

#[test]
fn java_random_is_the_one_of_java() {
    let mut random = JavaRandom::seeded(0);
    for expected in [0.802_533_063_739_030_5, -0.901_546_088_417_512_2, 2.080_920_790_428_163] {
        assert_eq!(random.next_gaussian(), expected);
    }
    let mut random = JavaRandom::seeded(0);
    let gaussians = fold((0..1_000_000).map(|_| bits(random.next_gaussian())));
    assert_eq!(gaussians, -3_588_495_936_292_336_562);
}

#[test]
fn words_are_those_of_faster_random() {
    let mut words = Xorshift::seeded(1);
    for expected in
        [-4_146_445_186_634_961_508, -5_644_524_092_788_810_841, -8_780_053_043_296_993_624]
    {
        assert_eq!(words.next_i64(), expected);
    }
    // Past three reseedings.
    let mut words = Xorshift::seeded(5);
    assert_eq!(fold((0..100).map(|_| words.next_i64())), -7_826_842_371_508_594_915);
}

#[test]
fn distributions_draw_what_the_original_draws() {
    for original in &ORIGINALS {
        let Original { spec, .. } = original;
        let distribution = Distribution::parse(spec).unwrap();
        let mut state = DrawState::seeded(99);
        assert_eq!(
            original.first.map(|_| distribution.sample(&mut state)),
            original.first,
            "{spec}"
        );
        let seeds = [0, 12_345, 24_690, 37_035];
        let states = seeds.map(DrawState::seeded);
        let all = states.into_iter().flat_map(|mut state| {
            let distribution = &distribution;
            (0..25_000).map(move |_| distribution.sample(&mut state))
        });
        assert_eq!(fold(all), original.fold, "{spec}");
        let mut state = DrawState::seeded(7);
        let reals = fold((0..20_000).map(|_| bits(distribution.sample_f64(&mut state))));
        assert_eq!(reals, original.fold_f64.unwrap_or(reals), "{spec}");
        assert_eq!(distribution.average(), original.average, "{spec}");
        assert_eq!(distribution.quantile(0.3), original.quantile, "{spec}");
    }
}

fn key(size: usize, seed: i64) -> String {
    let keys = KeyGenerator::new(size);
    let mut out = vec![0; keys.room()];
    let size = keys.write(seed, &mut out);
    String::from_utf8(out[..size].to_vec()).unwrap()
}

fn blob(column: &str, size: Distribution, partition_seed: i64) -> Vec<u8> {
    let blobs = BlobGenerator::new(column, size);
    let mut out = vec![0; blobs.room()];
    let size = blobs.write(partition_seed, &mut out);
    out.truncate(size);
    assert!(blobs.verify(partition_seed, &out));
    out
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn salts_are_the_original_ones() {
    for (name, expected) in [
        ("key", -6_294_861_599_187_687_378),
        ("C0", 5_919_258_029_671_157_411),
        ("C1", 2_823_822_333_041_508_710),
        ("C2", -4_400_155_034_025_812_751),
        ("C3", -611_415_708_070_891_864),
        ("C4", -329_182_932_806_138_863),
    ] {
        assert_eq!(salt(&format!("randomstr{name}")), expected, "{name}");
    }
}

#[test]
fn keys_are_the_original_ones() {
    for (seed, expected) in [
        (6, "7O2N651270"),
        (10, "P6MNM8P9O0"),
        (100, "045NKO3290"),
        (1_000, "74PM400L90"),
        (1_000_000, "0PMNL82P31"),
        (100_000_000, "N626L21501"),
    ] {
        assert_eq!(key(10, seed), expected, "seed {seed}");
    }
    assert_eq!(key(50, 1), "0P37709P210000009LMK8N28N00000008KPPM853610000005L");
    for size in 0..50 {
        assert_eq!(key(size, 1), key(50, 1)[..size], "size {size}");
    }
}

#[test]
fn partitions_and_their_columns_are_the_original_ones() {
    let five = Distribution::fixed(5);
    for (seed, expected_key, partition_seed, value) in [
        (1, "0P37709P21", 1_338_786_723_438_483, [-123i8, 24, 47, -33, -25]),
        (2, "O8LK79LO61", 2_138_651_199_823_976, [-72, -32, 83, 32, -51]),
        (3, "OP001L5930", 2_158_326_113_993_629, [95, -16, -124, 89, -52]),
        (4, "9N54NK4861", 1_575_090_586_760_464, [16, -15, -35, 111, -21]),
        (5, "77596MO230", 1_502_598_601_642_299, [-36, -98, 27, -16, 94]),
    ] {
        assert_eq!(key(10, seed), expected_key);
        assert_eq!(fold_bytes(0, expected_key.as_bytes()), partition_seed);
        assert_eq!(blob("C0", five.clone(), partition_seed), value.map(i8::cast_unsigned));
    }
    let partition_seed = fold_bytes(0, key(10, 1).as_bytes());
    let expected = [
        "85182fdfe7f86306cd58ce81aa53cca24c193841d6ae8a91646a4c304dd9f47892f9",
        "1f5c9f8c30a62ce4815e936de814514ea33ed4d85fa33f90222d58a5a0a49b38d2fe",
        "225510932bd8812b4610817653b79c86552c99aefb177f4cefa4850a9139db696e6e",
        "d7e099a59da559e039600f6e2c0ede94bada8cfe5d8d4ff26d68ff597d3b3f68f2b4",
        "fbdd9cec024fcbde438399670475aa8900d80e0ed3d0c3312d9d4ae79241214d74c3",
    ];
    for (name, expected) in column_names(5).iter().zip(expected) {
        let value = blob(name, Distribution::fixed(34), partition_seed);
        assert_eq!(hex(&value), expected, "{name}");
    }
}

#[test]
fn a_value_that_differs_anywhere_is_refused() {
    let blobs = BlobGenerator::new("C0", Distribution::fixed(34));
    let mut value = blob("C0", Distribution::fixed(34), 7);
    for at in 0..value.len() {
        value[at] ^= 1;
        assert!(!blobs.verify(7, &value), "byte {at}");
        value[at] ^= 1;
    }
    assert!(blobs.verify(7, &value) && !blobs.verify(8, &value));
    assert!(!blobs.verify(7, &value[..33]) && !blobs.verify(7, b""));
}

#[test]
fn columns_stand_in_the_order_of_their_names() {
    assert_eq!(
        column_names(12),
        ["C0", "C1", "C10", "C11", "C2", "C3", "C4", "C5", "C6", "C7", "C8", "C9"]
    );
}

#[test]
fn long_and_varying_values_are_the_original_ones() {
    for (size, expected) in [
        ("uniform(10..300)", 6_442_346_965_397_395_851),
        ("gaussian(1..2000)", 6_242_860_356_561_898_271),
        ("fixed(2000)", -5_496_863_368_564_279_147),
    ] {
        let distribution = Distribution::parse(size).unwrap();
        let all = (0..1_000i64).fold(0i64, |fold, n| {
            let value = blob("C0", distribution.clone(), n * n * n * 7_919 - 5);
            fold_bytes(fold.wrapping_mul(31).wrapping_add(value.len() as i64), &value)
        });
        assert_eq!(all, expected, "{size}");
    }
    let keys = (0..100_000).fold(0, |fold, seed| fold_bytes(fold, key(10, seed).as_bytes()));
    assert_eq!(keys, 4_523_168_098_896_078_337);
}

/// Type, population, size, and folds over the bytes of three values of each of 2000 seeds and over
/// the seeds of what would lie below them.
const COLUMNS: [(&str, &str, &str, i64, i64); 27] = [
    ("text", "", "", 1_091_929_525_039_942_484, 2_986_361_244_520_555_644),
    (
        "text",
        "uniform(1..1000)",
        "gaussian(1..60)",
        -5_011_840_308_944_473_854,
        -2_120_115_230_767_266_333,
    ),
    ("bigint", "", "", -1_161_088_053_994_989_977, 1_632_739_163_427_506_501),
    ("bigint", "gaussian(-1000..1000)", "", -1_309_243_641_887_334_167, 4_089_634_320_599_789_219),
    ("blob", "", "", 3_633_224_737_214_459_668, -2_528_920_672_525_474_116),
    ("blob", "seq(1..100)", "fixed(300)", 6_411_921_734_301_357_649, -4_389_939_796_138_040_903),
    ("boolean", "", "", 7_743_742_909_121_342_976, 5_412_427_910_909_058_328),
    ("decimal", "", "", -4_375_613_150_191_019_845, 1_632_739_163_427_506_501),
    ("decimal", "uniform(-300..300)", "", -4_497_414_353_183_381_222, -5_486_230_370_144_541_073),
    ("double", "", "", 3_874_235_644_569_696_081, 1_632_739_163_427_506_501),
    ("double", "gaussian(-5..5)", "", -2_806_275_147_071_806_680, 7_400_556_370_274_498_522),
    ("double", "exp(1..1000)", "", 4_189_543_915_962_976_269, -4_124_992_589_181_511_844),
    ("float", "", "", -3_396_651_898_712_983_727, -2_516_985_428_755_734_272),
    ("inet", "", "", 948_723_172_479_306_686, -556_435_056_133_749_978),
    ("int", "", "", 948_723_172_479_306_686, -5_552_259_708_486_219_451),
    ("varint", "uniform(-70000..70000)", "", -3_464_002_936_707_975_727, 7_972_233_664_949_797_007),
    ("timestamp", "", "", 6_231_340_902_788_504_063, -7_900_617_372_593_890_585),
    ("uuid", "", "", -3_113_452_945_425_702_450, -7_276_943_520_155_073_000),
    ("timeuuid", "", "", 6_685_698_145_119_875_137, 6_472_283_402_756_420_323),
    ("tinyint", "", "", 4_464_838_473_734_620_519, 6_320_206_822_531_617_349),
    ("smallint", "", "", -8_454_192_411_491_304_856, 5_822_690_212_292_004_165),
    ("time", "", "", -1_161_088_053_994_989_977, 1_632_739_163_427_506_501),
    ("date", "", "", -2_709_556_550_834_590_530, -5_552_259_708_486_219_451),
    ("date", "uniform(-100..20000)", "", -6_061_797_802_720_534_014, 8_348_619_750_367_800_002),
    ("list<int>", "", "fixed(5)", -9_193_943_891_893_532_834, 0),
    ("set<text>", "uniform(1..9)", "fixed(4)", 8_741_629_957_161_731_714, 0),
    ("list<text>", "", "fixed(3)", -6_036_958_934_868_660_461, 0),
];

fn column_type(name: &str) -> ColumnType {
    let scalar = |name| ScalarType::named(name).unwrap();
    match name.trim_end_matches('>').split_once('<') {
        Some(("list", element)) => ColumnType::List(scalar(element)),
        Some((_, element)) => ColumnType::Set(scalar(element)),
        None => ColumnType::Scalar(scalar(name)),
    }
}

/// The elements of a set in the order of the database, which sorts them.
fn sorted(set: &[u8]) -> Vec<u8> {
    let mut elements = Vec::new();
    let mut rest = &set[4..];
    while let Some((length, behind)) = rest.split_first_chunk() {
        let (element, behind) = behind.split_at(u32::from_be_bytes(*length) as usize);
        elements.push((element, length));
        rest = behind;
    }
    elements.sort_unstable();
    elements.iter().fold(set[..4].to_vec(), |all, (element, length)| {
        [all.as_slice(), length.as_slice(), element].concat()
    })
}

#[test]
fn columns_of_profiles_are_the_original_ones() {
    let distribution = |spec: &str| (!spec.is_empty()).then(|| Distribution::parse(spec).unwrap());
    for (name, population, size, values, seeds) in COLUMNS {
        let spec = ColumnSpec {
            population: distribution(population),
            size: distribution(size),
            cluster: distribution("uniform(1..50)"),
        };
        let column = ColumnGenerator::new("Col", column_type(name), spec);
        let mut out = vec![0; column.room()];
        let (mut value_fold, mut child_fold, mut seed_fold) = (0i64, 0i64, 0i64);
        for parent in 0..2_000i64 {
            let seed = parent * parent * parent * 7_919 - 5;
            let mut draws = column.seeded(seed);
            child_fold = child_fold.wrapping_mul(31).wrapping_add(column.children(seed));
            for _ in 0..3 {
                let written = column.write(&mut draws, &mut out);
                let mut value = out[..written].to_vec();
                if name.starts_with("set") {
                    value = sorted(&value);
                }
                value_fold = value_fold.wrapping_mul(31).wrapping_add(value.len() as i64);
                value_fold = fold_bytes(value_fold, &value);
                if matches!(column.column_type, ColumnType::Scalar(_)) {
                    let below = column.fold(parent, &value);
                    seed_fold = seed_fold.wrapping_mul(31).wrapping_add(below);
                }
            }
        }
        assert_eq!(value_fold, values, "{name} {population} {size}");
        assert_eq!(seed_fold, seeds, "{name} {population} {size}: seeds below");
        assert_eq!(child_fold, -565_903_685_289_682_195, "{name}");
    }
}
