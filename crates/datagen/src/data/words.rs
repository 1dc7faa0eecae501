//! Words for texts, in the order of their lengths.

/// The longest word's length, in characters.
pub(crate) const LONGEST: usize = 12;

/// Words of 1 to [`LONGEST`] letters, each length represented, so that a text can end at any length with a
/// whole word.
#[rustfmt::skip]
pub(crate) const WORDS: &[&str] = &[
    "a",
    "an", "as", "at", "be", "by", "go", "if", "in", "is", "it", "no", "of", "on", "or", "so", "to", "up",
    "we",
    "all", "and", "bag", "big", "box", "buy", "can", "cup", "day", "dry", "for", "get", "jar", "key", "lid",
    "map", "net", "new", "oak", "oil", "old", "one", "pan", "pay", "pen", "pot", "red", "rug", "set", "six",
    "tea", "ten", "the", "tin", "toy", "two", "use", "wax", "you",
    "back", "ball", "bank", "belt", "bike", "blue", "boat", "bolt", "book", "boot", "bowl", "cake", "card",
    "case", "coat", "cord", "dark", "desk", "door", "easy", "fair", "fine", "flat", "gift", "gold", "good",
    "hand", "home", "iron", "kind", "lamp", "last", "long", "made", "mild", "pack", "pair", "rice", "ring",
    "roof", "rope", "sale", "salt", "sand", "seed", "shoe", "silk", "soap", "soft", "tape", "tile", "tool",
    "unit", "warm", "wide", "wine", "wood", "wool",
    "apple", "basic", "black", "board", "bread", "brush", "cable", "chair", "clean", "clear", "clock",
    "cloth", "cover", "cream", "daily", "dress", "extra", "frame", "fresh", "glass", "glove", "grain",
    "green", "heavy", "honey", "house", "knife", "large", "laser", "light", "linen", "metal", "model",
    "motor", "order", "paint", "paper", "phone", "plain", "plate", "price", "quick", "quiet", "radio",
    "ready", "scarf", "sharp", "shelf", "shirt", "short", "small", "smart", "solid", "spare", "spice",
    "steel", "stone", "store", "sugar", "sweet", "table", "thick", "towel", "watch", "water", "wheel",
    "white",
    "amount", "basket", "bottle", "bright", "butter", "button", "camera", "candle", "carpet", "coffee",
    "cotton", "double", "engine", "filter", "flower", "garden", "guitar", "hammer", "handle", "helmet",
    "indoor", "jacket", "kettle", "ladder", "marble", "mirror", "modern", "narrow", "needle", "office",
    "orange", "packet", "pencil", "pepper", "pillow", "pocket", "retail", "ribbon", "saddle", "screen",
    "select", "silver", "simple", "single", "smooth", "socket", "spring", "strong", "summer", "switch",
    "thread", "ticket", "travel", "window", "winter", "wooden", "yellow",
    "account", "balance", "battery", "bedroom", "blanket", "bracket", "cabinet", "ceramic", "charger",
    "classic", "compact", "crystal", "curtain", "deliver", "digital", "display", "durable", "elegant",
    "folding", "general", "grocery", "harvest", "invoice", "jewelry", "kitchen", "lantern", "leather",
    "limited", "machine", "natural", "outdoor", "package", "payment", "plastic", "popular", "premium",
    "printer", "product", "quality", "regular", "sandals", "scanner", "speaker", "storage", "sweater",
    "trolley", "vintage", "weekend",
    "adjusted", "aluminum", "assembly", "backpack", "bathroom", "brochure", "building", "business",
    "ceramics", "computer", "customer", "delivery", "discount", "electric", "envelope", "favorite",
    "flexible", "footwear", "handmade", "hardware", "headband", "keyboard", "material", "medicine",
    "notebook", "painting", "portable", "practice", "purchase", "quantity", "resident", "schedule",
    "seasonal", "shipment", "standard", "supplies", "swimwear", "textiles", "umbrella", "upgraded",
    "workshop",
    "available", "beautiful", "certified", "chocolate", "condition", "container", "corporate", "decorated",
    "different", "equipment", "essential", "exclusive", "fireproof", "furniture", "generator", "guarantee",
    "household", "important", "insulated", "invoicing", "marketing", "microwave", "newspaper", "ornaments",
    "packaging", "permanent", "pineapple", "priceless", "protector", "reduction", "reference", "satellite",
    "selection", "sparkling", "stainless", "streaming", "telephone", "traveller", "universal", "vegetable",
    "warehouse", "wholesale",
    "accessible", "affordable", "architects", "assortment", "attachment", "background", "calculator",
    "collection", "commercial", "components", "controller", "convenient", "decoration", "dependable",
    "electrical", "expedition", "experience", "foundation", "frequently", "friendship", "generation",
    "illuminate", "instrument", "limitation", "mechanical", "negotiable", "ornamental", "paintbrush",
    "photograph", "profitable", "reasonable", "reflective", "refreshing", "repairable", "seasonable",
    "smartphone", "strawberry", "structural", "sufficient", "suspension", "tablecloth", "television",
    "toothbrush", "ultrasonic", "understand", "vegetables", "ventilated", "warranties", "waterproof",
    "accessories", "advertising", "appropriate", "combination", "comfortable", "competitive", "consignment",
    "countertops", "destination", "distributor", "electricity", "established", "handcrafted", "hardworking",
    "information", "installment", "lightweight", "magnificent", "maintenance", "merchandise", "performance",
    "personalize", "preparation", "protections", "refrigerate", "replacement", "reservation", "restoration",
    "sustainable", "transparent", "watercolors", "wholesalers", "workstation",
    "announcement", "appreciation", "architecture", "certificates", "collectibles", "construction",
    "conventional", "distribution", "efficiencies", "entertaining", "handkerchief", "illumination",
    "intermediate", "manufactured", "multipurpose", "photographer", "presentation", "professional",
    "refrigerator", "registration", "requirements", "satisfactory", "significance", "subscription",
    "transmission",
];

/// `UP_TO[n]` is how many words have at most `n` letters.
pub(crate) const UP_TO: [usize; LONGEST + 1] = {
    let mut up_to = [0; LONGEST + 1];
    let mut index = 0;
    while index < WORDS.len() {
        let mut length = WORDS[index].len();
        while length <= LONGEST {
            up_to[length] += 1;
            length += 1;
        }
        index += 1;
    }
    up_to
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_in_the_order_of_their_lengths_and_every_length_has_some() {
        assert!(WORDS.is_sorted_by_key(|word| word.len()));
        assert!(WORDS.iter().all(|word| word.is_ascii()));
        assert!(UP_TO.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(UP_TO[LONGEST], WORDS.len());
    }
}
